"""Gradients overflow because the loss scale is too high.

What it looks for
A step whose gradients overflow at the loss scale in use, are finite at scale 1, and a scale that never comes down.

Why training breaks
Gradients times the scale pass 65504. A dynamic scale halves itself until they fit; a fixed one overflows again in every step: either no
step is ever taken, or infinities reach the weights.

When it is fine
The dynamic scaler's search: a few skipped steps at the start, and now and then one later.

How to confirm
EXP201 (dynamic scaling) and EXP203 (a scale inside the window).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import made_by_hand, scale_left_in


def check(recording: Recording) -> Iterator[Hit]:
    """Overflow that a smaller scale would not have."""
    step = recording.failing
    if step is None or recording.loss_by_scale is not None:
        return
    origin = recording.trace.origin if recording.trace else None
    backward = origin is None or (origin.site.phase in (Phase.BACKWARD, Phase.UNSCALE) and not made_by_hand(origin))
    window = recording.window
    high = f"; scales from {window.low:g} to {window.high:g} would work" if window is not None and not window.empty else ""
    if recording.finite_at_scale_one:
        fixed = "the scale is fixed (no backoff)" if recording.scaler_backs_off is False else "the scale did not come down"
        at_scale = f"at loss scale {step.scale:g}" if step.scale is not None else "as the loop scales them"
        yield Hit(message=f"gradients overflow {at_scale} and are finite at a small one; {fixed}{high}", at=origin.site if origin else None)
    elif backward and origin is not None and origin.mechanism == "overflow" and origin.dtype == "float16" and recording.finite_at_scale_one is None:
        at_scale = f" at loss scale {step.scale:g}" if step.scale is not None else ", and the loop has no dynamic loss scale"
        yield Hit(
            message=f"a gradient overflows fp16{at_scale}: {origin.why}{high}",
            at=origin.site,
            confidence=Confidence.LOW if scale_left_in(recording) else Confidence.MEDIUM,
        )


RULE = Rule(code="RUN301", severity=Severity.ERROR, cause="loss-scaling", check=check)
