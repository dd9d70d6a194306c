"""The optimizer works on fp32 copies of 16-bit weights, gradients and moments; the model gets the rounded weights back.

What it proves: updates that were lost now collect; arithmetic that failed in 16 bits does not.
When it misleads: moments that were already flushed stay zero.
"""

from __future__ import annotations

import torch

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, SAME, Experiment, Judgement, Lab
from mpdoctor.replay.observations import LOSS_JUMP, finite, moments_flushed, updates_lost

_STEPS = 10
"""Steps over which lost updates were measured."""


def obstacle(lab: Lab) -> str | None:
    """Needs weights in 16 bits and a fault of their state."""
    if lab.recording.weights_dtype == "float32":
        return "the weights are fp32"
    return None if lab.has("RUN401", "RUN402", "RUN403") else "no sign of state lost in 16 bits"


def perform(lab: Lab) -> Judgement:
    """Run with masters: do the weights move, is the jump gone, is the update finite?"""
    recording = lab.recording
    if recording.failing_step is not None:
        return lab.judged(lab.run(Changes(master_weights=True)))
    if updates_lost(recording):
        last = recording.steps[min(len(recording.steps), _STEPS) - 1].step
        plain, wide = lab.run(Changes(), until=last), lab.run(Changes(master_weights=True), until=last)
        start = lab.run(Changes(), until=-1)
        moved_plain, moved_wide = _moved(start.session.model, plain.session.model), _moved(start.session.model, wide.session.model)
        words = f"{moved_wide:.0%} of the 16-bit weights have changed after {len(wide.steps)} steps, against {moved_plain:.0%} without masters"
        masters = any(m.dtype is torch.float32 for m in wide.masters.values())
        return (GONE if masters else SAME), words
    before = moments_flushed(recording)
    result = lab.run(Changes(master_weights=True), until=recording.steps[-1].step)
    losses = finite([s.loss for s in result.steps[:4]])
    if before is None or len(losses) < 2:
        return SAME, "the run is too short to tell"
    jumped = max(losses[1:]) > LOSS_JUMP * abs(losses[0])
    return (SAME if jumped else GONE), f"the loss goes from {losses[0]:.4g} to {max(losses[1:]):.4g}, against {before[2]:.4g} before"


def _moved(before: torch.nn.Module, after: torch.nn.Module) -> float:
    changed, total = 0, 0
    for a, b in zip(before.parameters(), after.parameters(), strict=True):
        changed += int((a != b).sum())
        total += a.numel()
    return changed / total if total else 0.0


EXPERIMENT = Experiment(
    id="EXP602",
    changes="fp32 master weights and optimizer state",
    causes=("low-precision-state",),
    obstacle=obstacle,
    perform=perform,
)
