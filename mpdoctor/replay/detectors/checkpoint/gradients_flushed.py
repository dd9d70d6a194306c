"""No gradient ever reached the optimizer: its first moments are exactly zero after many steps.

What it looks for
First moments (or momentum) that are exactly zero in every element after at least one update, for at least half of the parameters.

Why training breaks
A moment is zero only when every gradient so far was. In an fp16 run gradients below 6e-8 are exactly zero; without loss scaling that
can be all of them. The weights move by weight decay alone and the loss stands.

When it is fine
Parameters that are frozen, unused, or whose rows never occurred (embeddings) have zero moments; when it is most of the model, something is
wrong with the gradients.

Example
`38 of 40 first moments are exactly zero after 200 updates; the run computes in float16 without a scaler`

Instead
Scale the loss (torch.amp.GradScaler with its defaults), or train in bf16.

How to confirm
The experiment "dynamic scaling" of `mpdoctor replay`, and the loss-scale window that it prints.

References
P. Micikevicius et al.: Mixed Precision Training (2018), section 3.2 and figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, named, saw


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit; loss scaling is the cause only where the run computes in fp16 and has no scaler."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    optimizer = evidence.autopsy.optimizer
    if optimizer is None or not optimizer.first or (optimizer.steps is not None and optimizer.steps[1] < 1):
        return
    dead = [t for t in optimizer.first if t.counted and t.zeros == t.counted and t.amax == 0]
    if sum(t.numel for t in dead) < 0.5 * sum(t.numel for t in optimizer.first):
        return
    unscaled = evidence.compute == "float16" and not evidence.checkpoint.scaler
    after = f" after {optimizer.steps[1]} updates" if optimizer.steps else ""
    text = f"{len(dead)} of {len(optimizer.first)} first moments are exactly zero{after}: no gradient ever arrived ({named(dead)})"
    if unscaled:
        text += "; the run computes in fp16 without a loss scaler"
    remedy = Remedy(text="Use a dynamic loss scale (torch.amp.GradScaler with its defaults), or train in bf16, which needs none.")
    yield Hit(
        message=text, at=at(dead[0].entry.file, dead[0].name), evidence=(saw(text, dead[0].entry.file),), remedy=remedy if unscaled else None,
        cause="loss-scaling" if unscaled else "training-loop", confidence=Confidence.HIGH if unscaled else Confidence.LOW,
    )  # fmt: skip


RULE: Rule[CheckpointEvidence] = Rule(code="RUN712", severity=Severity.ERROR, needs=("checkpoint", "autopsy"), check=check)
