"""The loss is non-finite although all weights are finite: it goes wrong in the forward pass or the loss.

What it looks for
A log whose loss is non-finite (or a filtered zero) to its end, in a checkpoint whose weights are all finite.

Why training breaks
With finite weights a NaN loss is made anew at each step: by an activation above 65504 in an fp16 forward pass, or by data. The loss scale
has no part in it, because the loss is multiplied by the scale only after it was computed. A dynamic scaler skips such steps (which is
why the weights are still finite) and halves its scale for nothing.

When it is fine
When the checkpoint was saved before the break.

Example
`the loss is NaN from step 23 on while all 36 weight tensors are finite; the run computes in fp16`

Instead
In fp16: train in bf16 where the GPU has it, or keep the overflowing layer in fp32. Else look at the data of those steps.

How to confirm
`mpdoctor replay CHECKPOINT` with the run's data names the op, and the experiments "bf16" and "fp32" decide.

References
PyTorch: torch.amp.GradScaler.step skips the update when a gradient is non-finite.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged, saw
from mpdoctor.replay.checkpoints.checkpoint import MODEL_ROLES


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit; fp16's range is a cause only of a run that computes in fp16."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None and evidence.history is not None
    facts, weights = evidence.history.facts, evidence.autopsy.by_role(*MODEL_ROLES)
    first = facts.nonfinite_loss if facts.nonfinite_loss is not None else facts.zero_loss
    later = evidence.checkpoint.step is None or (first is not None and first <= evidence.checkpoint.step)
    if facts.broken_from is None or first is None or not weights or not later or any(t.nonfinite for t in weights):
        return
    text = f"the loss is non-finite from step {first} on while all {len(weights)} weight tensors are finite: the forward pass or the loss makes it so"
    fp16 = evidence.compute == "float16"
    if fp16:
        text += "; the run computes in fp16"
        yield Exclusion(
            cause="loss-scaling", evidence=logged("the loss itself is non-finite while the weights are finite; the scale acts after the loss")
        )
    facts_seen = (saw(f"all {len(weights)} weight tensors are finite", evidence.checkpoint.path), logged(f"loss non-finite from step {first}"))
    yield Hit(message=text, at=at(evidence.history.path, f"step {first}"), evidence=facts_seen, cause="fp16-range" if fp16 else None)


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN721", severity=Severity.ERROR, confidence=Confidence.MEDIUM, needs=("checkpoint", "autopsy", "history"), check=check
)
