"""Gradients are never cleared between steps.

What it looks for
An optimizer that steps again on the gradient tensors of its last step, with no zero_grad between.

Why training breaks
Each step adds to the sum of all before: the gradient norm grows with the number of steps, like a momentum of 1.

When it is fine
Accumulation over micro-batches before one step.

How to confirm
EXP502: with gradients cleared after each step the norm does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import uncleared


def check(recording: Recording) -> Iterator[Hit]:
    """Steps on gradients that were used before."""
    found = uncleared(recording)
    if len(found) >= 2:
        yield Hit(
            message=f"{len(found)} of {len(recording.steps)} steps use gradients that the optimizer had used before: zero_grad is missing",
            remedy=Remedy(text="Call optimizer.zero_grad() in every step."),
        )


RULE = Rule(code="RUN502", severity=Severity.ERROR, cause="training-loop", check=check)
