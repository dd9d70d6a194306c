"""Single weights that are out of all proportion get the value without their flipped bit, or 0.

What it proves: if the run then does not fail, these weights were the fault.
When it misleads: it does not say who damaged them: memory, a disk, or the code that wrote the file.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs such weights from the start on."""
    found = lab.recording.weight_outliers
    return first(
        failing(lab),
        None if found else "no weight is out of proportion",
        None if all(o.at_start for o in found) else "the weights were good at the start of the run",
    )


def perform(lab: Lab) -> Judgement:
    """Run with these values put right."""
    return lab.judged(lab.run(Changes(weights=tuple((o.name, o.index, o.restored) for o in lab.recording.weight_outliers))))


EXPERIMENT = Experiment(
    id="EXP307",
    changes="weights out of proportion put right",
    causes=("hardware", "checkpoint"),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
