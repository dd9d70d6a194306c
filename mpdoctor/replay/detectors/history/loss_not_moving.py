"""The loss is the same number in every row.

What it looks for
At least five rows whose loss is exactly the same number, and not zero.

Why training breaks
Batches differ, so losses differ in their last digits even when nothing is learned. Exactly the same number means that the output does not
depend on the input any more (all logits equal, saturated, or clamped), or that the log repeats one value.

When it is fine
When every step trains on the same batch with a learning rate of 0.

Example
`the loss is 10.8249 in all 40 rows`

Instead
Look at the logits of two different batches; a replay names the layer where they become equal.

How to confirm
`mpdoctor replay CHECKPOINT --steps 5`.

References
ln(vocabulary size) is the loss of equal logits: 10.8249 for 50257 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the whole log."""
    assert evidence.history is not None
    loss = evidence.history.facts.constant_loss
    if loss is None:
        return
    text = f"the loss is {loss:.6g} in all {evidence.history.facts.rows} rows: batches differ, so should losses"
    yield Hit(message=text, at=at(evidence.history.path), evidence=(logged(text),))


RULE: Rule[CheckpointEvidence] = Rule(code="RUN807", severity=Severity.WARNING, confidence=Confidence.MEDIUM, needs=("history",), check=check)
