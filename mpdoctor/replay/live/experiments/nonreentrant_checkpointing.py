"""torch.utils.checkpoint runs with use_reentrant=False.

What it proves: if the missing gradients appear, reentrant checkpointing over inputs that need no gradient had cut the graph.
When it misleads: it does not concern graphs that were cut by detach or no_grad.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, SAME, Experiment, Judgement, Lab
from mpdoctor.replay.observations import always_missing


def obstacle(lab: Lab) -> str | None:
    """Needs missing gradients."""
    return None if always_missing(lab.recording) else "no gradients are missing"


def perform(lab: Lab) -> Judgement:
    """Run one step; are they there?"""
    missing = set(always_missing(lab.recording))
    at = lab.recording.steps[0].step
    result = lab.run(Changes(nonreentrant_checkpointing=True), until=at)
    still = missing & set(result.steps[0].grads_missing) if result.steps else missing
    return (SAME, f"{len(still)} gradients are still missing") if still else (GONE, f"all {len(missing)} gradients are there")


EXPERIMENT = Experiment(
    id="EXP504",
    changes="activation checkpointing without reentrant autograd",
    causes=("training-loop",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
