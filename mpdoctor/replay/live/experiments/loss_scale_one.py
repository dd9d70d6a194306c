"""The failing step runs at loss scale 1.

What it proves: gradients that are bad at scale 1 too are not bad because of the scale.
When it misleads: at scale 1 small gradients vanish; a clean step says only that nothing overflows.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs a scaler."""
    return first(failing(lab), None if lab.recording.has_scaler else "the run has no loss scale")


def perform(lab: Lab) -> Judgement:
    """Run up to the failing step, that one at scale 1."""
    return lab.judged(lab.run(Changes(scale_at=(lab.last, 1.0))))


EXPERIMENT = Experiment(
    id="EXP202",
    changes="loss scale 1 in the failing step",
    causes=("loss-scaling",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
