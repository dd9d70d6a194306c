"""Memory pages of this GPU have been taken out of use.

What it looks for
    Retired pages: after double-bit errors (a warning), or after repeated single-bit errors (a remark). 60 and more are an error: NVIDIA's drivers
    hold 64.

Why training breaks
    Retired pages are harmless themselves; their number tells the state of the memory.

When it is fine
    A few pages in years of use.

How to confirm
    `nvidia-smi -q -d PAGE_RETIREMENT`.

References
    docs.nvidia.com/deploy/dynamic-page-retirement: replace from 60 pages on.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

REPLACE_FROM = 60
"""Pages from which on NVIDIA replaces a card (dynamic page retirement, RMA policy)."""


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Both kinds together decide about a replacement."""
    double = gpu.metric("retired_pages_double_bit").value or 0
    single = gpu.metric("retired_pages_single_bit").value or 0
    if double + single == 0:
        return
    many = double + single >= REPLACE_FROM
    yield Hit(
        message=f"{double + single} memory page{'s' if double + single != 1 else ''} retired, {double} after uncorrectable errors",
        at=gpu.ref,
        severity=Severity.ERROR if many else Severity.WARNING if double else Severity.INFO,
        remedy=Remedy(text="Have this GPU replaced." if many else "Watch the number: --watch, or the next runs."),
    )


RULE: Rule[GpuInfo] = Rule(code="GPU307", severity=Severity.WARNING, check=check, needs=("retired_pages_double_bit",))
