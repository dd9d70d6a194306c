"""A GPU has fallen off the bus, or must be reset.

What it looks for
    NVML says "GPU is lost" or "GPU requires reset" for this GPU; the others are read as usual.

Why training breaks
    Every job that uses it dies or hangs; with NCCL the others hang with it. Power, the PCIe link, heat or the driver are behind it (Xid 79).

When it is fine
    Never.

How to confirm
    `dmesg | grep -i xid` has Xid 79; `nvidia-smi` shows ERR! in its row.

References
    NVIDIA Xid catalogue, 79; nvgpu#6.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """NVML's own words decide."""
    match gpu.metric("state").value:
        case "lost":
            yield Hit(
                message="the driver has lost this GPU (fallen off the bus)",
                at=gpu.ref,
                remedy=Remedy(
                    text="Take it out of the job (CUDA_VISIBLE_DEVICES), reboot; if it comes back lost, check power and seating, or replace it."
                ),
            )
        case "needs reset":
            yield Hit(message="this GPU must be reset before it works again", at=gpu.ref, remedy=Remedy(text="nvidia-smi --gpu-reset, or reboot."))


RULE: Rule[GpuInfo] = Rule(code="GPU105", severity=Severity.ERROR, check=check, needs=("state",))
