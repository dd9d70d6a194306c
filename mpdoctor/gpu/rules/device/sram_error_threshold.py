"""The GPU's caches had more errors than NVIDIA allows.

What it looks for
    NVML's flag that uncorrected SRAM errors exceeded the threshold (Ampere and later, as root).

Why training breaks
    SRAM (registers, caches) cannot be remapped: the errors stay.

When it is fine
    Never: NVIDIA asks for a replacement.

How to confirm
    `nvidia-smi -q -d ECC`, "SRAM Threshold Exceeded".

References
    nvmlDeviceGetSramEccErrorStatus in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Read the flag."""
    if gpu.metric("sram_threshold_exceeded").value:
        yield Hit(
            message="uncorrected cache errors exceed NVIDIA's threshold", at=gpu.ref, remedy=Remedy(text="Take this GPU out and have it replaced.")
        )


RULE: Rule[GpuInfo] = Rule(
    code="GPU302", severity=Severity.ERROR, confidence=Confidence.MEDIUM, check=check, cause="hardware", needs=("sram_threshold_exceeded",)
)
