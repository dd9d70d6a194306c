"""The loss changes with the loss scale.

What it looks for
A step that the scaler skips: the same step at loss scale 1 has another loss.

Why training breaks
The scale belongs to the backward pass alone. A penalty on gradients that still carry it is as many times too large, and overflows.

When it is fine
Never.

How to confirm
Divide what torch.autograd.grad returns by scaler.get_scale() before it enters the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The two losses."""
    if recording.loss_by_scale is None:
        return
    step, loss, at_one = recording.loss_by_scale
    scale = next((s.scale for s in recording.steps if s.step == step), None)
    at = f" at loss scale {scale:g}" if scale is not None else ""
    yield Hit(
        message=f"the loss of step {step} is {loss:.4g}{at} and {at_one:.4g} at loss scale 1: gradients that carry the scale enter it",
        remedy=Remedy(text="Divide the gradients of torch.autograd.grad by scaler.get_scale() before they enter the loss."),
    )


RULE = Rule(code="RUN515", severity=Severity.ERROR, cause="training-loop", check=check)
