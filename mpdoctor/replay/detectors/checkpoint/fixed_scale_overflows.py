"""The loss scale is fixed, and gradients overflow at it.

What it looks for
A scaler that can neither grow nor back off (factors 1, or a static scale), in a run whose optimizer stopped stepping: skipped steps that
last to the end of the log, or a fifth of all steps.

Why training breaks
A dynamic scaler answers an overflow by halving its scale. A fixed one meets the same overflow at the next step: each step whose
gradients times the scale exceed 65504 is skipped. When gradients grow, that is every step, and training stands still for good.

When it is fine
A fixed scale with a margin, for a model whose gradients are known.

Example
`the loss scale is fixed at 128, and every logged step from 46 on overflows and is skipped`

Instead
Let the scale adapt (GradScaler with its defaults), or train in bf16, which needs no scale.

How to confirm
The experiment "dynamic scaling" of `mpdoctor replay`, and the loss-scale window that it prints.

References
PyTorch: torch.amp.GradScaler; DeepSpeed: fp16.loss_scale (0 means dynamic).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.autopsy.result import ScalerState
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw

_MANY = 0.2


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit when a fixed scale goes with steps that were not taken."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    scaler = evidence.autopsy.scaler
    if scaler is None or scaler.scale is None or not _fixed(scaler):
        return
    stuck = _stuck_from(evidence)
    share = _share_skipped(evidence)
    if stuck is None and share <= _MANY:
        return
    end = f"every logged step from {stuck} on overflows and is skipped" if stuck is not None else f"{share:.0%} of all steps were skipped"
    text = f"the loss scale is fixed at {scaler.scale:g}, and {end}"
    facts = (saw(f"growth factor {scaler.growth_factor}, backoff factor {scaler.backoff_factor}", evidence.checkpoint.path, "scale"),)
    remedy = Remedy(text="Let the loss scale adapt (torch.amp.GradScaler with its defaults), or train in bf16, which needs none.")
    yield Hit(message=text, at=at(evidence.checkpoint.path, "scale"), evidence=facts, remedy=remedy)


def _fixed(scaler: ScalerState) -> bool:
    return scaler.dynamic is False or (scaler.growth_factor == 1 and scaler.backoff_factor == 1)


def _stuck_from(evidence: CheckpointEvidence) -> int | None:
    """The step from which every row was skipped."""
    history = evidence.history
    if not history or history.facts.broken_from is None:
        return None
    start = history.facts.broken_from
    return start if all(row.skipped for row in history.rows if row.step >= start) else None


def _share_skipped(evidence: CheckpointEvidence) -> float:
    """Share of the run's steps that the optimizer did not take."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    optimizer, step = evidence.autopsy.optimizer, evidence.checkpoint.step
    return max(0.0, 1 - optimizer.steps[1] / step) if optimizer is not None and optimizer.steps is not None and step else 0.0


RULE: Rule[CheckpointEvidence] = Rule(code="RUN720", severity=Severity.ERROR, cause="loss-scaling", needs=("checkpoint", "autopsy"), check=check)
