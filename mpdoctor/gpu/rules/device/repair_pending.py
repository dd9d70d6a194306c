"""A repair of this GPU waits for a reset.

What it looks for
    A channel or TPC repair that is pending (Ampere and later, driver 580 and later).

Why training breaks
    A part of the chip is known to be broken and is replaced by a spare at the next reset; until then it is in use.

When it is fine
    Never for long.

How to confirm
    `nvidia-smi -q`, repair status.

References
    nvmlDeviceGetRepairStatus in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Read the flags."""
    parts = [
        name
        for name, metric in (("memory channel", "repair_pending_channel"), ("compute unit (TPC)", "repair_pending_tpc"))
        if gpu.metric(metric).value
    ]
    if parts:
        yield Hit(message=f"the repair of a {' and a '.join(parts)} waits for a reset", at=gpu.ref, remedy=Remedy(text="Drain the GPU and reset it."))


RULE: Rule[GpuInfo] = Rule(
    code="GPU308", severity=Severity.WARNING, confidence=Confidence.MEDIUM, check=check, cause="hardware", needs=("repair_pending_channel",)
)
