"""The schedule takes the learning rate to nothing.

What it looks for
A learning rate below a hundred-thousandth of its largest in most steps, and at the end.

Why training breaks
A schedule meant for epochs that is stepped with every batch, or one made for fewer steps than the run has, multiplies the rate away.

When it is fine
The run is over (the checkpoint of its last step).

How to confirm
Print scheduler.get_last_lr() over the steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import lr_always_zero, rate_gone


def check(recording: Recording) -> Iterator[Hit]:
    """How far the rate falls."""
    found = rate_gone(recording)
    if found is not None and not lr_always_zero(recording):
        largest, last, steps = found
        yield Hit(
            message=f"the learning rate falls from {largest:.3g} to {last:.3g}: {steps} of {len(recording.steps)} steps move nothing",
            remedy=Remedy(text="Step the scheduler as often as it was made for (once per epoch, or give it the number of batches)."),
        )


RULE = Rule(code="RUN514", severity=Severity.ERROR, cause="training-loop", check=check)
