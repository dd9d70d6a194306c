"""fp16 flushes gradients to zero.

What it looks for
In a run that computes in fp16: the gradient norm of the step in fp32 is at least 1.25 times the norm that the run sees; or that is so
for parameters that hold a quarter of all elements. Elements alone do not count: most gradients of a large vocabulary are next to nothing.

Why training breaks
fp16's smallest number is 6e-8; gradients below half of that are exactly 0, and nothing is learned from them.

When it is fine
Gradients that are large enough need no scaling; bf16 and fp32 need none.

How to confirm
EXP201: with dynamic loss scaling the gradients are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import lost_gradients, underflows


def check(recording: Recording) -> Iterator[Hit]:
    """Gradients that fp32 has and the run has not."""
    if not underflows(recording):
        return
    window = recording.window
    scale = f"loss scale {window.used:g}" if recording.has_scaler and window is not None and window.used is not None else "no loss scaling"
    needed = _scale_needed(recording)
    need = f"; a scale of at least {needed:g} is needed" if needed is not None else ""
    yield Hit(message=f"fp16 with {scale}: {lost_gradients(recording)}{need}")


def _scale_needed(recording: Recording) -> float | None:
    """The lowest scale that keeps the gradients, in all and of each module that is starved; None where it is not known."""
    starved = recording.starved.modules if recording.starved is not None else ()
    windows = [e.scale_window() for e in recording.gradient_exponents if e.name in starved]
    lows = [w[0] for w in windows if w is not None] + ([recording.window.low] if recording.window is not None else [])
    return max(lows) if lows else None


RULE = Rule(code="RUN302", severity=Severity.ERROR, cause="loss-scaling", check=check)
