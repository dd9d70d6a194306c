"""Every optimizer step is taken with the learning rate x 0.5.

What it proves: with the growth seen before the failure, a run that does not fail with smaller steps had steps that were too large.
When it misleads: with smaller steps every failure that depends on the weights comes later, so without growth it proves nothing.
"""

from __future__ import annotations

from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab
from mpdoctor.replay.live.smaller_steps import judged, obstacle


def perform(lab: Lab) -> Judgement:
    """Run with the smaller rate."""
    return judged(lab, 0.5)


EXPERIMENT = Experiment(
    id="EXP101",
    changes="learning rate x 0.5",
    causes=("learning-rate",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
