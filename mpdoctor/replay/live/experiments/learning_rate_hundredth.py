"""Every optimizer step is taken with a hundredth of the learning rate.

What it proves: as EXP102, for a rate that is more than ten times too high.
When it misleads: with smaller steps every failure that depends on the weights comes later, so without growth it proves nothing.
"""

from __future__ import annotations

from mpdoctor.core.report import ExperimentOutcome
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab
from mpdoctor.replay.live.smaller_steps import judged
from mpdoctor.replay.live.smaller_steps import obstacle as smaller_steps_obstacle


def obstacle(lab: Lab) -> str | None:
    """Needs growth that a tenth of the rate did not cure."""
    cured = any(r.id == "EXP102" and r.outcome is ExperimentOutcome.FAILURE_GONE for r in lab.results)
    return "a tenth of the rate was enough" if cured else smaller_steps_obstacle(lab) or (None if lab.has("RUN201") else "nothing grows")


def perform(lab: Lab) -> Judgement:
    """Run with the smaller rate."""
    return judged(lab, 0.01)


EXPERIMENT = Experiment(
    id="EXP103",
    changes="learning rate x 0.01",
    causes=("learning-rate",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
