"""Autocast casts the weights anew each time.

What it proves: within one forward pass cached and fresh casts are bitwise equal; if the losses differ, old casts were served.
When it misleads: it does not; the comparison is bitwise.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, SAME, Experiment, Judgement, Lab
from mpdoctor.replay.observations import autocast_left_open


def obstacle(lab: Lab) -> str | None:
    """Needs an open region."""
    return None if autocast_left_open(lab.recording) else "no autocast region stays open"


def perform(lab: Lab) -> Judgement:
    """Compare the losses."""
    result = lab.run(Changes(uncached_autocast=True), until=lab.recording.steps[-1].step)
    for before, after in zip(lab.recording.steps, result.steps, strict=False):
        if before.loss != after.loss:
            return GONE, f"the loss of step {before.step} is {after.loss:.6g} with fresh casts, {before.loss:.6g} with cached ones"
    return SAME, "the losses are the same with fresh casts"


EXPERIMENT = Experiment(
    id="EXP503",
    changes="autocast without its weight cache",
    causes=("training-loop",),
    obstacle=obstacle,
    perform=perform,
)
