"""The learning rate is NaN, infinite or negative.

What it looks for
The rate that the optimizer holds when a step begins.

Why training breaks
All weights are multiplied by it in one step; a negative rate climbs.

When it is fine
Never: an optimizer that maximises takes `maximize=True`.

How to confirm
Print the schedule: a division by the number of steps that are left, or by a warm-up of 0 steps, makes such rates.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import bad_learning_rate


def check(recording: Recording) -> Iterator[Hit]:
    """The first such step."""
    step = bad_learning_rate(recording)
    if step is not None:
        yield Hit(
            message=f"the learning rate of step {step.step} is {step.lr:g}",
            remedy=Remedy(text="Look at the schedule at this step: a warm-up of 0 steps, or a division by the steps that are left."),
        )


RULE = Rule(code="RUN202", severity=Severity.ERROR, cause="learning-rate", check=check)
