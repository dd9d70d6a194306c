"""Most parameters with gradients are in no optimizer.

What it looks for
Trainable parameters that get a gradient, more than half of the model, and belong to no optimizer that stepped.

Why training breaks
The optimizer holds other tensors: copies from before a cast or a move, or another model's parameters. The model never changes.

When it is fine
Parameters that a loop updates by hand.

How to confirm
Compare the ids of the model's parameters with those in optimizer.param_groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import not_optimized


def check(recording: Recording) -> Iterator[Hit]:
    """Which parameters are left out."""
    names = not_optimized(recording)
    if names:
        yield Hit(message=f"{len(names)} parameters with gradients are in no optimizer (first: {names[0]})")


RULE = Rule(code="RUN510", severity=Severity.ERROR, cause="training-loop", check=check)
