"""Broken memory pages wait to be taken out of use.

What it looks for
    Page retirement that is pending (NVIDIA before Ampere; AMD's bad page list).

Why training breaks
    The pages are still in use until the driver is reloaded.

When it is fine
    Until then, jobs that do not touch them are safe.

How to confirm
    `nvidia-smi -q -d PAGE_RETIREMENT`, "Pending Page Blacklist: Yes"; AMD: `ras/gpu_vram_bad_pages` in the card's folder of /sys.

References
    docs.nvidia.com/deploy/dynamic-page-retirement; kernel documentation, amdgpu RAS.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Read the flag."""
    if gpu.metric("retired_pages_pending").value:
        yield Hit(message="broken memory pages wait to be retired", at=gpu.ref, remedy=Remedy(text="Drain the GPU and reboot, or reload the driver."))


RULE: Rule[GpuInfo] = Rule(
    code="GPU306", severity=Severity.WARNING, confidence=Confidence.MEDIUM, check=check, cause="hardware", needs=("retired_pages_pending",)
)
