"""Every optimizer's eps is 1e-6, which fp16 can hold.

What it proves: if the weights stay finite, an eps that had rounded to zero was the fault.
When it misleads: a larger eps also damps steps that were too large for other reasons.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs a failure inside the optimizer's 16-bit arithmetic."""
    return first(failing(lab), None if lab.has("RUN402") else "the optimizer did not make the bad value")


def perform(lab: Lab) -> Judgement:
    """Run with the larger eps."""
    return lab.judged(lab.run(Changes(adam_eps=1e-6)))


EXPERIMENT = Experiment(
    id="EXP601",
    changes="Adam eps 1e-6",
    causes=("low-precision-state",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
