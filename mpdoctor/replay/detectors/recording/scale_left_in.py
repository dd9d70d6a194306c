"""The optimizer steps on gradients that still carry the loss scale.

What it looks for
optimizer.step() called on scaled gradients, without scaler.step or scaler.unscale_.

Why training breaks
The update is as many times too long as the scale is large.

When it is fine
Adam without eps and clipping does not mind a constant factor; everything else does.

How to confirm
Call scaler.step(optimizer) in place of optimizer.step().
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import scale_left_in


def check(recording: Recording) -> Iterator[Hit]:
    """The first such step."""
    found = scale_left_in(recording)
    if found:
        yield Hit(
            message=f"optimizer.step() is called on gradients that still carry the loss scale of {found[0].scale_not_removed:g} "
            f"(step {found[0].step})",
            remedy=Remedy(text="Call scaler.step(optimizer) and scaler.update() in place of optimizer.step()."),
        )


RULE = Rule(code="RUN508", severity=Severity.ERROR, cause="training-loop", check=check)
