"""What the learning-rate experiments share: when they apply, and when smaller steps have cured a run."""

from __future__ import annotations

from dataclasses import replace

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, OTHER, SAME, Judgement, Lab
from mpdoctor.replay.observations import DIVERGED, bad_learning_rate, diverging

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


def judged(lab: Lab, factor: float) -> Judgement:
    """Run with smaller steps, a little beyond the failing step."""
    result = lab.run(Changes(lr_factor=factor), until=lab.last + _FURTHER)
    if lab.recording.failing_step is not None:
        outcome, words = lab.judged(result)
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
