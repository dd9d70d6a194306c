"""Values of parameters and buffers that are not finite before the first step are replaced by 0.

What it proves: if the run then does not fail, those values are the fault.
When it misleads: zeros are no proper values; what the run learns afterwards says nothing.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs bad values before the first step."""
    bad = lab.recording.initial_bad_parameters or lab.recording.initial_bad_buffers
    return first(failing(lab), None if bad else "all parameters and buffers are finite at the start")


def perform(lab: Lab) -> Judgement:
    """Run with zeros in their place."""
    return lab.judged(lab.run(Changes(finite_parameters=True)))


EXPERIMENT = Experiment(
    id="EXP305",
    changes="bad parameters and buffers replaced by zeros",
    causes=("initialisation", "checkpoint"),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
