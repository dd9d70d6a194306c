"""Something holds the GPU's clocks back.

What it looks for
    Reasons that the driver gives for lower clocks: heat, the power brake or a hardware slowdown (a warning); a power cap, which is normal under
    load, only as a remark.

Why training breaks
    It is slower. It is never a cause of NaN.

When it is fine
    Under full load every GPU is at its power cap.

How to confirm
    `nvidia-smi -q -d PERFORMANCE`.

References
    nvmlDeviceGetCurrentClocksEventReasons in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule

_HARD = ("hardware slowdown", "hardware thermal", "software thermal", "power brake", "reliability")
_SOFT = ("software power cap", "board limit")


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Hard reasons first; idle and set clocks say nothing."""
    reasons = gpu.metric("clocks_event_reasons").value or ()
    hard = [reason for reason in reasons if reason in _HARD or reason.startswith("unknown")]
    soft = [reason for reason in reasons if reason in _SOFT]
    if hard or soft:
        yield Hit(
            message=f"clocks are held back: {', '.join(hard or soft)} (speed only)",
            at=gpu.ref,
            severity=Severity.WARNING if any(reason in _HARD for reason in hard) else Severity.INFO,
        )


RULE: Rule[GpuInfo] = Rule(code="GPU314", severity=Severity.WARNING, check=check, needs=("clocks_event_reasons",))
