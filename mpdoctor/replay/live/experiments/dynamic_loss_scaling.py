"""The loss is scaled dynamically with torch's defaults, in place of the run's own scaling or of none.

What it proves: gradients that were flushed or overflowed and now fit were scaled wrongly.
When it misleads: a dynamic scaler also hides an isolated bad step by skipping it.
"""

from __future__ import annotations

import math

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, NOT_RUN, SAME, Experiment, Judgement, Lab, first, fp16
from mpdoctor.replay.live.measurements import gradients_at
from mpdoctor.replay.observations import STARVED_SHARE, UNDERFLOW_GAIN, underflows

_FURTHER = 18
"""A scale of 2**32 needs this many halvings to fit."""


def obstacle(lab: Lab) -> str | None:
    """Needs fp16 and a failure of gradients."""
    if not lab.has("RUN301", "RUN302", "RUN303"):
        return first(fp16(lab), "no sign of gradients lost or overflowed by scaling")
    return None


def perform(lab: Lab) -> Judgement:
    """Gradients that were flushed must come back; steps that were skipped must be taken."""
    recording = lab.recording
    if not recording.has_scaler and recording.failing_step is not None:
        factor = 2.0**-12
        outcome, words = lab.judged(lab.run(Changes(backward_scale_at=(lab.last, factor))))
        return outcome, f"with the backward pass scaled down by {1 / factor:g}: {words}"
    if underflows(recording) and recording.failing_step is None:
        at = recording.steps[0].step
        true = recording.scaling_gain or math.inf
        plain = gradients_at(lab.investigation.source, at, Changes(), lab.deadline)
        better = Changes(dynamic_scaling=True) if recording.has_scaler else Changes(backward_scale=2.0**16)
        scaled = gradients_at(lab.investigation.source, at, better, lab.deadline)
        if plain is None or scaled is None:
            return SAME, "no gradient with scaling either"
        gain = scaled.norm / plain.norm if plain.norm > 0 else (math.inf if scaled.norm > 0 else 1.0)
        words = f"gradient norm {plain.norm:.3g} as it is, {scaled.norm:.3g} at scale 65536; {plain.zero_share:.0%} and {scaled.zero_share:.0%} zeros"
        starved = plain.starved_against(scaled)
        fed = starved is not None and starved.share > STARVED_SHARE
        enough = (gain > UNDERFLOW_GAIN and (math.isinf(true) or gain > 0.5 * true)) or fed
        return (GONE if enough and math.isfinite(scaled.norm) else SAME), words
    result = lab.run(Changes(dynamic_scaling=True), until=lab.last + _FURTHER, after_failure=_FURTHER)
    taken = [s for s in result.steps if s.took_a_step and s.step >= lab.last]
    bad = [s for s in result.steps if s.nonfinite_weights or (s.loss is not None and not math.isfinite(s.loss))]
    if result.exception is None and not bad and (taken or (result.steps and result.steps[-1].took_a_step)):
        last = result.steps[-1]
        return GONE, f"steps are taken again at loss scale {last.scale:g}" if last.scale is not None else "steps are taken again"
    if result.exception is None and not bad and result.steps and all(s.skipped and (s.scale or 0.0) > 1.0 for s in result.steps):
        return NOT_RUN, f"the batches end at loss scale {result.steps[-1].scale:g}, before it has come down far enough to tell"
    return SAME, f"{sum(bool(s.skipped) for s in result.steps)} of {len(result.steps)} steps are still skipped or bad"


EXPERIMENT = Experiment(
    id="EXP201",
    changes="dynamic loss scaling (GradScaler defaults)",
    causes=("loss-scaling",),
    obstacle=obstacle,
    perform=perform,
)
