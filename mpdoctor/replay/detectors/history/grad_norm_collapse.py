"""The gradient norm fell to (nearly) nothing while the loss did not.

What it looks for
Gradient norms below a thousandth of their earlier median in the last three rows, or exactly 0 in every row, beside a loss that did not
come down with them.

Why training breaks
Nothing is learned any more. In fp16 gradients below 6e-8 are exactly zero: without loss scaling, or with a scale that fell, all of them
may be. Other ways to the same sight: a graph that was cut (`detach`, `no_grad`), units that died, labels that are all ignored.

When it is fine
When the loss is nearly zero too: the model fits its data.

Example
`the gradient norm is exactly 0 in all 20 rows while the loss is 4.16`

Instead
In fp16 use a dynamic loss scale, or train in bf16. Else find where the gradient stops: `mpdoctor replay` names the layer.

How to confirm
`mpdoctor replay CHECKPOINT` prints the loss-scale window and, by layer, zero and missing gradients.

References
P. Micikevicius et al.: Mixed Precision Training (2018), figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit; loss scaling is its cause only in a run that computes in fp16."""
    assert evidence.history is not None
    history, facts = evidence.history, evidence.history.facts
    if facts.dead_from_start:
        loss = next(r.loss for r in history.rows if r.loss)
        text, step = f"the gradient norm is exactly 0 in all {facts.rows} rows while the loss is {loss:.4g}", history.rows[0].step
    elif facts.collapse is not None:
        change, step = facts.collapse, facts.collapse.to_step
        text = f"the gradient norm fell from about {change.before:.3g} to {change.after:.3g} at step {step} and stayed there; the loss did not follow"
    else:
        return
    fp16 = evidence.compute == "float16" or facts.scale_last is not None
    unscaled = fp16 and facts.scale_last is None and (evidence.checkpoint is None or not evidence.checkpoint.scaler)
    remedy = Remedy(text="Use a dynamic loss scale (GradScaler with its defaults), or train in bf16, which needs none.") if unscaled else None
    yield Hit(
        message=text, at=at(history.path, f"step {step}"), evidence=(logged(text),), remedy=remedy, cause="loss-scaling" if fp16 else None,
        confidence=Confidence.HIGH if unscaled else Confidence.MEDIUM,
    )  # fmt: skip


RULE: Rule[CheckpointEvidence] = Rule(code="RUN803", severity=Severity.ERROR, needs=("history",), check=check)
