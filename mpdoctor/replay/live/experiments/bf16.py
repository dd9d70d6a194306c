"""Autocast, casts, weights and constants that ask for fp16 get bf16.

What it proves: an overflow that fp16 has and bf16 has not is a matter of range.
When it misleads: fewer significant bits can hide a cancellation, or make one.
"""

from __future__ import annotations

import torch

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first, fp16


def obstacle(lab: Lab) -> str | None:
    """Needs an fp16 run that fails."""
    return first(failing(lab), fp16(lab))


def perform(lab: Lab) -> Judgement:
    """Run up to the failing step in bf16."""
    return lab.judged(lab.run(Changes(compute_dtype=torch.bfloat16)))


EXPERIMENT = Experiment(
    id="EXP301",
    changes="bf16 in place of fp16",
    causes=("fp16-range",),
    obstacle=obstacle,
    perform=perform,
)
