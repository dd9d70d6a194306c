"""The loss scale has fallen to (nearly) nothing.

What it looks for
A saved loss scale that is zero, not finite, or below 1.

Why training breaks
A dynamic scaler halves its scale after each non-finite gradient. From 65536 it takes 17 halvings to get below 1 and about 165 to reach
exactly 0 in fp32. A scale below 1 means that gradients were non-finite at every scale: the overflow happens in the forward pass or in
the loss, where the scale has no part. At 0 every scaled gradient is 0 or, where something overflows, 0 times infinity = NaN; no
step is taken any more, and the loss in the log looks as if training went on.

When it is fine
A scaler that is switched off saves no scale. A fixed scale of 1 was chosen by somebody; a dynamic one that stands at its floor of 1
(DeepSpeed's `min_loss_scale`) was not.

Example
`scaler.pt: the loss scale is 0.0`

Instead
Find what overflows at every scale (a replay names it), train in bf16 where the GPU has it, and start with a fresh scaler.

How to confirm
`mpdoctor replay CHECKPOINT`: if the origin is in the forward pass, no scale helps.

References
PyTorch: torch.amp.GradScaler (init_scale 65536, growth_factor 2, backoff_factor 0.5, growth_interval 2000).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """Judge the saved scale; a run that is certainly not fp16 has none, which rules loss scaling out."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    state, path = evidence.autopsy.scaler, evidence.checkpoint.path
    if evidence.no_fp16:
        yield Exclusion(cause="loss-scaling", evidence=saw(f"the run computes in {evidence.autopsy.dtypes.training} and saved no loss scaler", path))
    if state is None or state.scale is None:
        return
    facts = (saw(f"loss scale {state.scale:g}, {state.growth_tracker} good steps since it last changed", path, "scale"),)
    if state.scale == 0 or not math.isfinite(state.scale):
        text = f"the loss scale is {state.scale:g}: no gradient can be unscaled any more, every step is skipped or NaN"
        yield Hit(message=text, at=at(path, "scale"), evidence=facts)
    elif 0 < state.scale < 1:
        text = f"the loss scale has fallen to {state.scale:.3g}: gradients were non-finite at every scale, so the overflow is not the scale's doing"
        remedy = Remedy(
            text="Find what makes the gradients non-finite: replay the failing steps (with a recipe, where the model is not built from files)."
        )
        yield Hit(message=text, at=at(path, "scale"), evidence=facts, remedy=remedy, confidence=Confidence.MEDIUM)
    elif state.scale == 1 and state.dynamic is not False and state.growth_interval is not None:
        text = "the dynamic loss scale stands at 1: it was halved at least 16 times"
        yield Hit(message=text, at=at(path, "scale"), evidence=facts, severity=Severity.WARNING, confidence=Confidence.LOW)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN703", severity=Severity.ERROR, cause="loss-scaling", needs=("checkpoint", "autopsy"), check=check)
