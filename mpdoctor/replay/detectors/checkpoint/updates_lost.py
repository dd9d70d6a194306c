"""Weights in 16 bits do not move: a step of the run's learning rate is smaller than half their spacing.

What it looks for
Weights stored in bf16 or fp16 that the optimizer updates directly (its moments are 16 bits too, and there are no master weights), of
which more than half stay where they are under a step of the learning rate.

Why training breaks
bf16 keeps 8 significant bits: next to 0.05 numbers lie 2.4e-4 apart, so an update of 1e-5 rounds away, every time. Adam's updates are
about as large as the learning rate. The loss falls at first (large gradients, small weights move) and then stands.

When it is fine
With fp32 master weights, with stochastic rounding or Kahan summation (`adamw_anyprecision` with `use_kahan_summation`), or when only the
few large weights are affected.

Example
`71% of the weights (bfloat16) do not move under a step of 1e-05; half of them would from 1.2e-04`

Instead
Keep the weights in fp32 and let autocast compute in 16 bits; or train with fp32 master weights (DeepSpeed, FSDP mixed precision).

How to confirm
The experiment "fp32 master weights" of `mpdoctor replay`.

References
P. Zamirai et al.: Revisiting BFloat16 Training (2020), on nearest rounding of weight updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, percent, saw
from mpdoctor.replay.checkpoints import Role

_SHARE = 0.5


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the whole model."""
    assert evidence.autopsy is not None
    story, lr = evidence.autopsy.dtypes, evidence.autopsy.lr
    direct = story.moments and set(story.moments) <= {"float16", "bfloat16"} and not story.master and not story.adapter
    weights = [t for t in evidence.autopsy.by_role(Role.WEIGHT) if t.entry.dtype in ("float16", "bfloat16") and t.unmoved is not None]
    if not direct or lr is None or not weights or "kahan" in str(evidence.settings.get("optim_args", "")):
        return
    numel = sum(t.numel for t in weights)
    share = sum(t.share(t.unmoved) * t.numel for t in weights) / numel if numel else 0.0
    if share <= _SHARE:
        return
    worst = max(weights, key=lambda t: t.share(t.unmoved) * t.numel)
    needed = median(t.median_lr for t in weights if t.median_lr is not None)
    text = f"{percent(share)} of the weights ({story.main}) do not move under a step of {lr:g}; half of them would from {needed:.2g}"
    facts = (saw(f"{worst.name}: {percent(worst.share(worst.unmoved))} of {worst.numel:,}", worst.entry.file, worst.name),)
    yield Hit(message=text, at=at(worst.entry.file, worst.name), evidence=facts)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN705", severity=Severity.WARNING, cause="low-precision-state", needs=("autopsy",), check=check)
