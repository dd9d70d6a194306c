"""The loss is scaled by the middle of the window of scales that keep the gradients inside fp16's range.

What it proves: if this scale works and the run's does not, the scale is at fault.
When it misleads: the window is computed from one step; later gradients may need another.
"""

from __future__ import annotations

import math

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs a scaler, and a window that is not empty."""
    window = lab.recording.window
    return first(
        failing(lab),
        None if lab.recording.has_scaler else "the run has no loss scale",
        None if lab.has("RUN301") else "no sign that the scale is at fault",
        None if window is not None and not window.empty else "no scale would work",
    )


def perform(lab: Lab) -> Judgement:
    """Run with the window's middle as fixed scale."""
    window = lab.recording.window
    scale = 2.0 ** round((math.log2(window.low) + math.log2(window.high)) / 2) if window is not None else 1.0
    outcome, words = lab.judged(lab.run(Changes(scale=scale)))
    return outcome, f"{words} (scale {scale:g})"


EXPERIMENT = Experiment(
    id="EXP203",
    changes="a fixed loss scale inside the computed window",
    causes=("loss-scaling",),
    obstacle=obstacle,
    perform=perform,
)
