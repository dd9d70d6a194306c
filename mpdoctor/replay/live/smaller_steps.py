"""What the learning-rate experiments share: when they apply, and when smaller steps have cured a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mpdoctor.core.trace import Recording, StepObservation
from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, OTHER, SAME, Judgement, Lab
from mpdoctor.replay.observations import DIVERGED, bad_learning_rate, diverging, growth

_NEXT_TO_NOTHING = 0.01
"""Factor of the learning rate at which steps move next to nothing."""
_ALIKE = 3.0
"""Ratio up to which growth counts as the same."""
_FURTHER = 3
"""Steps beyond the failing one: smaller steps must not only delay the failure."""


def obstacle(lab: Lab) -> str | None:
    """Needs a failure after at least one optimizer step, or a loss that diverges."""
    recording = lab.recording
    rate = bad_learning_rate(recording)
    if rate is not None:
        return f"the learning rate is {rate.lr:g} in step {rate.step}, and no factor makes a rate of that"
    if diverging(recording) is not None:
        return None
    if recording.failing_step is None:
        return "no step fails"
    if not any(s.took_a_step for s in recording.steps if s.step < (recording.failing_step or 0)):
        return "the failure is there before any optimizer step"
    return None


def _grows_alike(recording: Recording, steps: Sequence[StepObservation]) -> bool:
    """Whether the growth before the failure is there with next to no learning rate too: then the batches make it, not the steps."""
    seen, again = growth(recording), growth(replace(recording, steps=tuple(steps)))
    if seen is None or again is None or seen.what != again.what:
        return False
    return 1 / _ALIKE < (again.last / again.first) / (seen.last / seen.first) < _ALIKE


def judged(lab: Lab, factor: float) -> Judgement:
    """Run with smaller steps, a little beyond the failing step."""
    result = lab.run(Changes(lr_factor=factor), until=lab.last + _FURTHER)
    if lab.recording.failing_step is not None:
        outcome, words = lab.judged(result)
        if outcome is SAME and factor <= _NEXT_TO_NOTHING:
            lab.grows_at_any_rate = _grows_alike(lab.recording, result.steps)
        losses = [s.loss for s in result.steps if s.loss is not None]
        if outcome is GONE and losses and abs(losses[-1]) > DIVERGED * abs(losses[0]):
            return OTHER, f"it does not fail up to step {result.steps[-1].step}, but the loss still grows ({losses[0]:.4g} to {losses[-1]:.4g})"
        return outcome, words
    failure = lab.failure_in(result)
    if failure is not None:
        return SAME, failure[1]
    still = diverging(replace(lab.recording, steps=tuple(result.steps)))
    losses = [s.loss for s in result.steps if s.loss is not None]
    if still is None and losses:
        return GONE, f"the loss goes from {losses[0]:.4g} to {losses[-1]:.4g} in {len(losses)} steps"
    return SAME, str(still)
