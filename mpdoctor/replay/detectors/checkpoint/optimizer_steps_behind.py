"""The optimizer took fewer steps than the run: the loss scaler skipped the others.

What it looks for
The optimizer's own step count against the run's step, in a run with a loss scaler.

Why training breaks
A scaler skips the step after non-finite gradients and halves its scale. A few skips are its way of finding the scale; when it skips a
fifth of all steps, gradients overflow at scales that it keeps coming back to, and training loses those batches.

When it is fine
Up to about 5 skips at the start, and one now and then (the scale doubles every 2000 good steps until it overflows once).

Example
`99 optimizer steps of 100: 1 skipped by the loss scaler, which is normal`

Instead
Nothing for a few. For many: look for the batches or layers whose gradients overflow (a replay names them), or train in bf16.

How to confirm
`mpdoctor replay CHECKPOINT --steps 50` counts skipped steps.

References
PyTorch: torch.amp.GradScaler; AdamW counts its steps per parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, percent, saw

_MANY = 0.2
_FEW_STEPS = 5


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit, as information where the number of skips is normal."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    counted = _skipped(evidence)
    if counted is None or counted[0] <= 0:
        return
    skipped, step = counted
    taken = step - skipped
    many = skipped > _FEW_STEPS and skipped / step > _MANY
    facts = (saw(f"optimizer step {taken}, run step {step}", evidence.checkpoint.path),)
    # A loss that is not finite is skipped at any scale: such skips are no search, whatever their number.
    broken = evidence.history is not None and evidence.history.facts.broken_from is not None
    normal = "of which those of the broken steps are no search" if broken else "which is normal: a dynamic scaler finds its scale by skipping"
    verdict = "more than a scaler's search explains" if many else normal
    text = f"{taken} optimizer steps of {step}: {skipped} ({percent(skipped / step)}) skipped by the loss scaler, {verdict}"
    yield Hit(
        message=text, at=at(evidence.checkpoint.path), evidence=facts, severity=Severity.WARNING if many else Severity.INFO,
        confidence=Confidence.MEDIUM if many else Confidence.HIGH, cause="loss-scaling" if many else None,
    )  # fmt: skip


def _skipped(evidence: CheckpointEvidence) -> tuple[int, int] | None:
    """Skipped steps and all steps: counted by DeepSpeed itself, else by the optimizer's count against the run's."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    own, total = evidence.checkpoint.extra.get("skipped_steps"), evidence.checkpoint.extra.get("global_steps")
    if isinstance(own, int) and isinstance(total, int) and 0 <= own <= total:
        return own, total
    optimizer, step = evidence.autopsy.optimizer, evidence.checkpoint.step
    if evidence.autopsy.scaler is None or optimizer is None or optimizer.steps is None or not step or not 0 <= optimizer.steps[1] <= step:
        return None
    return step - optimizer.steps[1], step


RULE: Rule[CheckpointEvidence] = Rule(code="RUN719", severity=Severity.WARNING, needs=("checkpoint", "autopsy"), check=check)
