"""scaler.unscale_ is called before each clipping that would see scaled gradients.

What it proves: if the optimizer then gets gradients of their true size, the order was the fault.
When it misleads: it does not say whether the limit itself is right.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, SAME, Experiment, Judgement, Lab
from mpdoctor.replay.observations import clipped_scaled


def obstacle(lab: Lab) -> str | None:
    """Needs a clipping of scaled gradients."""
    return None if clipped_scaled(lab.recording) is not None else "no clipping of scaled gradients"


def perform(lab: Lab) -> Judgement:
    """Run to the first such clipping, in the right order."""
    found = clipped_scaled(lab.recording)
    step = found[0] if found else lab.recording.steps[0]
    result = lab.run(Changes(clip_after_unscale=True), until=step.step)
    seen = next((s for s in result.steps if s.step == step.step), None)
    if seen is None or seen.grad_norm is None or step.grad_norm is None:
        return SAME, "the step did not run"
    true = [c.norm for c in seen.clip_calls]
    limit = step.clip_calls[0].limit
    after = min(true[0], limit) if true else seen.grad_norm
    words = f"the clipped norm goes from {limit / (step.scale or 1.0):.3g} to {after:.3g}"
    return (GONE if seen.clip_calls and all(c.scale == 1.0 for c in seen.clip_calls) else SAME), words


EXPERIMENT = Experiment(
    id="EXP501",
    changes="gradients unscaled before clipping",
    causes=("training-loop",),
    obstacle=obstacle,
    perform=perform,
)
