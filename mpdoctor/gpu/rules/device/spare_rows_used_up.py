"""Memory banks of this GPU have few spare rows left, or none.

What it looks for
    The row remapper's histogram: banks whose availability is "low" or "none".

Why training breaks
    It does not yet. The next broken row in such a bank cannot be replaced.

When it is fine
    As long as nothing breaks there.

How to confirm
    `nvidia-smi -q -d ROW_REMAPPER`, "Bank Remap Availability Histogram".

References
    nvmlDeviceGetRowRemapperHistogram in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Count the banks."""
    histogram = gpu.metric("spare_rows").value or {}
    none, low = histogram.get("none", 0), histogram.get("low", 0)
    if none or low:
        parts = [f"{number} bank{'s' if number != 1 else ''} {what}" for number, what in ((none, "without spare rows"), (low, "with few")) if number]
        yield Hit(message=f"memory is wearing out: {' and '.join(parts)}", at=gpu.ref, remedy=Remedy(text="Plan to replace this GPU."))


RULE: Rule[GpuInfo] = Rule(code="GPU305", severity=Severity.WARNING, check=check, needs=("spare_rows",))
