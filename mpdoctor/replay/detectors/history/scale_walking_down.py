"""The loss scale fell all the way to the end of the log.

What it looks for
A logged loss scale that fell at least four times in its last rows and never rose.

Why training breaks
A dynamic scaler halves its scale after each non-finite gradient. When halving does not help, the non-finite value does not come from
the scale: it arises in the forward pass or the loss. Every step is skipped; in the end the scale is 0 (or at its floor) and the run
stands still or raises ("Current loss scale already at minimum").

When it is fine
Some falls at the start of training, until the scale fits.

Example
`the loss scale fell from 65536 to 0.5 between step 120 and step 137`

Instead
Find what overflows at every scale; train in bf16 where the GPU has it.

How to confirm
`mpdoctor replay` on the checkpoint before the fall: with the origin in the forward pass no scale helps.

References
DeepSpeed: DynamicLossScaler, min_loss_scale; PyTorch: torch.amp.GradScaler.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged

_SEARCH = 8
"""Halvings from 65536 that still are a scaler's search: most runs settle at 256 or more."""


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit; a fall that ends at a usual scale is only worth a word."""
    assert evidence.history is not None
    walk = evidence.history.facts.scale_walk
    if walk is None:
        return
    text = f"the loss scale fell from {walk.before:g} to {walk.after:g} between step {walk.from_step} and step {walk.to_step} and never rose again"
    deep = walk.after < 1 or walk.before / max(walk.after, 1e-45) > 2**_SEARCH
    yield Hit(
        message=text, at=at(evidence.history.path, f"step {walk.to_step}"), evidence=(logged(text),),
        severity=Severity.ERROR if deep else Severity.INFO, confidence=Confidence.MEDIUM if deep else Confidence.LOW,
        cause="loss-scaling" if deep else None,
    )  # fmt: skip


RULE: Rule[CheckpointEvidence] = Rule(code="RUN804", severity=Severity.ERROR, needs=("history",), check=check)
