"""The optimizer works on fp32 copies of 16-bit weights, gradients and moments; the model gets the rounded weights back.

What it proves: updates that were lost now collect; arithmetic that failed in 16 bits does not.
When it misleads: moments that were already flushed stay zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

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
        names = {id(p): n for n, p in wide.session.model.named_parameters()}
        masters = {names[key]: master for key, master in wide.masters.items() if key in names}
        before = dict(start.session.model.named_parameters())
        taken = _distance(before, dict(plain.session.model.named_parameters()), masters)
        meant = _distance(before, masters, masters)
        words = f"fp32 masters move by {meant:.3g} in {len(wide.steps)} steps, the {recording.weights_dtype} weights by {taken:.3g}"
        return (GONE if meant > 2 * taken else SAME), words
    flushed = moments_flushed(recording)
    result = lab.run(Changes(master_weights=True), until=recording.steps[-1].step)
    losses = finite([s.loss for s in result.steps[:4]])
    if flushed is None or len(losses) < 2:
        return SAME, "the run is too short to tell"
    jumped = max(losses[1:]) > LOSS_JUMP * abs(losses[0])
    return (SAME if jumped else GONE), f"the loss goes from {losses[0]:.4g} to {max(losses[1:]):.4g}, against {flushed[2]:.4g} before"


def _distance(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor], names: Iterable[str]) -> float:
    """L2 distance of the named weights."""
    return math.sqrt(sum(float((after[n].detach().double() - before[n].detach().double()).square().sum()) for n in names))


EXPERIMENT = Experiment(
    id="EXP602",
    changes="fp32 master weights and optimizer state",
    causes=("low-precision-state",),
    obstacle=obstacle,
    perform=perform,
)
