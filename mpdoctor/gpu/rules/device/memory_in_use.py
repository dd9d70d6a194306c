"""Other programs hold memory of this GPU.

What it looks for
    Running compute processes, or more than a tenth of the memory in use.

Why training breaks
    "CUDA out of memory" at a batch size that fitted yesterday; a shared GPU is slower, too.

When it is fine
    When they are the job's own processes.

How to confirm
    `nvidia-smi`, the list of processes. In WSL2 and containers it can be empty although memory is in use.

References
    nvmlDeviceGetComputeRunningProcesses in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Processes by number, memory by share."""
    used, total = gpu.metric("memory_used_bytes").value, gpu.metric("memory_total_bytes").value
    processes = gpu.metric("processes").value or []
    share = used / total if used is not None and total else 0.0
    if processes or share > 0.1:
        who = (
            f"{len(processes)} process{'es' if len(processes) != 1 else ''} (pid {', '.join(str(p['pid']) for p in processes[:4])})"
            if processes
            else "somebody"
        )
        much = f"{used / 2**30:.3g} of {total / 2**30:.3g} GiB in use" if used is not None and total else "memory in use is not told"
        yield Hit(message=f"{who} on this GPU, {much}", at=gpu.ref)


RULE: Rule[GpuInfo] = Rule(code="GPU403", severity=Severity.INFO, check=check)
