"""Gradients are scaled again after each backward pass of an accumulation.

What it looks for
Code of the loop's own that multiplies or divides one gradient in place after more than one backward pass, before the optimizer uses it.

Why training breaks
What the earlier passes added is scaled again each time: the result is no sum or mean of all passes, but mostly the last one, far too small.

When it is fine
One scaling, after the last backward pass.

How to confirm
The gradient norm of the step against that of one backward pass over the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import rescaled_gradient


def check(recording: Recording) -> Iterator[Hit]:
    """The first such step."""
    found = rescaled_gradient(recording)
    if found is None:
        return
    step, gradient = found
    yield Hit(
        message=f"the gradient of {gradient.name} is scaled after each of {gradient.passes} backward passes, the earlier ones again each time",
        at=TensorSite(step=step, phase=Phase.UNSCALE, source=gradient.source),
        remedy=Remedy(text="Divide the loss of each micro-batch before backward, or scale the gradients once, after the last backward pass."),
    )


RULE = Rule(code="RUN517", severity=Severity.ERROR, cause="training-loop", check=check)
