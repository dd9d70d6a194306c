"""The learning rate is 0 in every step.

What it looks for
A learning rate of exactly 0 in all replayed steps.

Why training breaks
A scheduler at its end, or stepped too early, multiplies the rate by 0: nothing moves.

When it is fine
The first steps of a warm-up from 0.

How to confirm
Print scheduler.get_last_lr().
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import lr_always_zero


def check(recording: Recording) -> Iterator[Hit]:
    """A rate that never leaves 0."""
    if lr_always_zero(recording):
        yield Hit(message=f"the learning rate is 0 in all {len(recording.steps)} steps")


RULE = Rule(code="RUN507", severity=Severity.ERROR, cause="training-loop", check=check)
