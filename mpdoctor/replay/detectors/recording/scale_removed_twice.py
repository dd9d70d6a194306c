"""The loss scale is divided out of the gradients twice.

What it looks for
Gradients that reach the optimizer as the true gradient divided by the loss scale once more.

Why training breaks
A loop that divides by scaler.get_scale() itself, and calls scaler.unscale_ or scaler.step all the same, makes every update as many times too
small as the scale is large.

When it is fine
Never; Adam hides it, until its eps is larger than the gradients.

How to confirm
Print the gradient norm before optimizer.step() with the scaler and without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import divided_again


def check(recording: Recording) -> Iterator[Hit]:
    """The first such step."""
    found = divided_again(recording)
    if found is not None:
        step, scale = found
        yield Hit(
            message=f"the gradients are divided by the loss scale of {scale:g} twice (step {step}): by the loop, and by the scaler",
            remedy=Remedy(text="Leave unscaling to scaler.unscale_ and scaler.step; do not divide by scaler.get_scale()."),
        )


RULE = Rule(code="RUN518", severity=Severity.ERROR, cause="training-loop", check=check)
