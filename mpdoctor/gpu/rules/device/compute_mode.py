"""The GPU's compute mode keeps programs away.

What it looks for
    Compute mode "prohibited" (an error) or "exclusive" (a remark).

Why training breaks
    Prohibited: CUDA cannot use the GPU ("all CUDA-capable devices are busy or unavailable"). Exclusive: a second process cannot, which ends data
    loaders that touch CUDA, and several ranks on one GPU.

When it is fine
    Exclusive mode is common on clusters.

How to confirm
    `nvidia-smi -q -d COMPUTE`.

References
    nvmlDeviceGetComputeMode in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Any mode but the default."""
    mode = gpu.metric("compute_mode").value
    if mode == "prohibited":
        yield Hit(message="compute mode is 'prohibited': CUDA cannot use this GPU", at=gpu.ref, remedy=Remedy(text="nvidia-smi -c 0, as root."))
    elif mode in ("exclusive-process", "exclusive-thread"):
        yield Hit(message=f"compute mode is '{mode}': one process only can use this GPU", at=gpu.ref, severity=Severity.INFO)


RULE: Rule[GpuInfo] = Rule(code="GPU406", severity=Severity.ERROR, check=check, needs=("compute_mode",))
