"""A GPU is counted, but cannot be opened.

What it looks for
    NVML gives no handle for it: no permission, not enough power, an interrupt problem, or a call that crashed.

Why training breaks
    CUDA usually cannot open it either.

When it is fine
    A container or cgroup that gives only some GPUs to the job: those without permission are other people's.

How to confirm
    `nvidia-smi -i N`, as root.

References
    nvmlDeviceGetHandleByIndex in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Every state but the ones that GPU105 speaks of."""
    state = gpu.metric("state").value
    if state not in ("ok", "lost", "needs reset"):
        yield Hit(
            message=f"this GPU cannot be read: {state}",
            at=gpu.ref,
            remedy=Remedy(text="Ask the administrator for it, or leave it out with CUDA_VISIBLE_DEVICES."),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU106", severity=Severity.WARNING, check=check, needs=("state",))
