"""The driver asks for this GPU to be reset or the machine to be rebooted.

What it looks for
    NVML's recovery action (driver 575 and later) is not "none".

Why training breaks
    The driver met an error that it cannot recover from by itself; new jobs on the GPU fail or hang.

When it is fine
    Never.

How to confirm
    `nvidia-smi -q`, "GPU Recovery Action".

References
    NVML field 230, GET_GPU_RECOVERY_ACTION; Xid 154.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Any action but none."""
    action = gpu.metric("recovery_action").value
    if action not in (None, "none"):
        yield Hit(message=f"the driver asks for recovery: {action}", at=gpu.ref, remedy=Remedy(text=f"Stop the jobs on this GPU, then: {action}."))


RULE: Rule[GpuInfo] = Rule(code="GPU309", severity=Severity.ERROR, check=check, needs=("recovery_action",))
