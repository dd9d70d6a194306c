"""The loss scaler skipped steps.

What it looks for
Rows that the log marks as skipped, or whose gradient norm is non-finite beside a finite loss in a run with a loss scaler.

Why training breaks
One skip in a while costs nothing: dynamic scaling finds its scale by overflowing. When a fifth of all steps is skipped, gradients do not
fit at scales that the scaler keeps coming back to. When nine of ten are skipped (a fixed scale, or one at its floor) hardly anything is
trained, whatever the loss looks like: that is an error.

When it is fine
About five skips at the start and one every 2000 steps are normal, and this says so.

Example
`2 of 100 logged steps were skipped by the loss scaler, which is normal`

Instead
Nothing for a few. For many: find the batches or layers that overflow, lower the initial scale, or train in bf16.

How to confirm
`mpdoctor replay CHECKPOINT --steps 50` counts skipped steps and prints the loss-scale window.

References
PyTorch: torch.amp.GradScaler (growth_interval 2000).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged, percent

_MANY = 0.2
_NEARLY_ALL = 0.9
_FEW = 5


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit, as information where the number is normal."""
    assert evidence.history is not None
    facts = evidence.history.facts
    if not facts.skipped or facts.skip_rate is None:
        return
    count = len(facts.skipped)
    many = count > _FEW and facts.skip_rate > _MANY
    nearly_all = many and facts.skip_rate >= _NEARLY_ALL
    rows = round(count / facts.skip_rate)
    text = f"{count} of {rows} logged steps were skipped by the loss scaler ({percent(facts.skip_rate)}; step {facts.skipped[0]} first)"
    text += (
        ": hardly anything is trained"
        if nearly_all
        else ", more than a scaler's search explains"
        if many
        else ""
        if facts.broken_from is not None  # skipped because the loss is not finite: no search, whatever their number
        else ", which is normal: a dynamic scaler finds its scale by skipping"
    )
    yield Hit(
        message=text, at=at(evidence.history.path, f"step {facts.skipped[0]}"), evidence=(logged(text),),
        severity=Severity.ERROR if nearly_all else Severity.WARNING if many else Severity.INFO,
        confidence=Confidence.MEDIUM if many and not nearly_all else Confidence.HIGH,
        cause="loss-scaling" if many else None,
    )  # fmt: skip


RULE: Rule[CheckpointEvidence] = Rule(code="RUN805", severity=Severity.WARNING, needs=("history",), check=check)
