"""Weights that no optimizer holds run away.

What it looks for
Parameters outside every optimizer (a moving average, a teacher) whose norm grows more than a hundredfold before the failing step.

Why training breaks
An average with a decay above 1, or one that is added to instead of averaged, grows from step to step until something overflows.

When it is fine
Never: an average stays between its values.

How to confirm
Print the norm of the named parameter over the steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The one that grew most."""
    if not recording.drifted:
        return
    name, start, now = max(recording.drifted, key=lambda d: d[2] / d[1])
    more = f" and {len(recording.drifted) - 1} more" if len(recording.drifted) > 1 else ""
    yield Hit(
        message=f"{name}{more} is in no optimizer and grows from a norm of {start:.3g} to {now:.3g} before step {recording.failing_step}: "
        "the loop itself changes it",
        remedy=Remedy(text="Check the averaging: average = decay * average + (1 - decay) * weight, with a decay between 0 and 1."),
    )


RULE = Rule(code="RUN516", severity=Severity.ERROR, cause="training-loop", check=check)
