"""The loaded optimizer state is dropped before the first step.

What it proves: if the run then does not fail, the state in the checkpoint is the fault.
When it misleads: a fresh Adam takes its first steps at full size.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs state that was loaded, and a failure that comes out of the optimizer."""
    recording = lab.recording
    trace = recording.trace
    by_optimizer = trace is not None and trace.origin is not None and trace.origin.site.phase == "optimizer"
    loaded = recording.loaded_moments_flushed is not None or lab.has("RUN702", "RUN704")
    return first(
        failing(lab), None if by_optimizer else "the optimizer did not make the bad value", None if loaded else "no optimizer state was loaded"
    )


def perform(lab: Lab) -> Judgement:
    """Run with a fresh state."""
    return lab.judged(lab.run(Changes(fresh_optimizer=True)))


EXPERIMENT = Experiment(
    id="EXP603",
    changes="optimizer state dropped",
    causes=("checkpoint",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
