"""An autocast region stays open over steps.

What it looks for
Autocast with its weight cache on that is still open when a step ends, while the weights change.

Why training breaks
Inside one region autocast casts each weight once and serves the cached copy: the forward pass keeps using the weights of the first step.

When it is fine
cache_enabled=False, or a region around one forward pass.

How to confirm
EXP503: with the cache off the losses differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import autocast_left_open


def check(recording: Recording) -> Iterator[Hit]:
    """Open regions, and whether the loss stands still."""
    if not autocast_left_open(recording):
        return
    losses = [s.loss for s in recording.steps]
    frozen = len(losses) > 2 and len(set(losses)) == 1
    text = "autocast stays open over steps: its weight cache serves the casts of the first step"
    yield Hit(
        message=text + (f"; the loss is {losses[0]:.6g} to the last digit in all {len(losses)} steps" if frozen else ""),
        remedy=Remedy(text="Enter autocast around each forward pass (or use cache_enabled=False)."),
    )


RULE = Rule(code="RUN504", severity=Severity.ERROR, cause="training-loop", check=check)
