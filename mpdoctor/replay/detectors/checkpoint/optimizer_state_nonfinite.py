"""The optimizer's moments are NaN or infinite.

What it looks for
NaN or infinity in Adam's moments or SGD's momentum.

Why training breaks
Moments are running averages: m = beta * m + (1 - beta) * g keeps a NaN for ever, and an infinite second moment makes every later
update of that weight zero. The next step carries the NaN into the weights, even when gradients are fine again.

When it is fine
Never. An update with non-finite gradients was applied: no scaler stood in between, or its check was bypassed.

Example
`state.4.exp_avg: 128 of 4096 values are NaN`

Instead
Resume from the last checkpoint whose moments are finite, or with fresh optimizer state and a short warmup.

How to confirm
The experiment "fresh optimizer state" of `mpdoctor replay`.

References
D. Kingma, J. Ba: Adam, section 2 (update rule). PyTorch: torch.amp.GradScaler.step, which skips updates with non-finite gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, named, saw
from mpdoctor.replay.checkpoints.checkpoint import MODEL_ROLES, MOMENT_ROLES


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for all moments, naming the first."""
    assert evidence.autopsy is not None
    bad = evidence.autopsy.nonfinite(*MOMENT_ROLES)
    if not bad:
        return
    weights = "the weights too" if evidence.autopsy.nonfinite(*MODEL_ROLES) else "the weights are still finite, and the next step makes them NaN"
    text = f"optimizer state holds NaN or infinity in {len(bad)} tensors ({named(bad)}); {weights}"
    facts = tuple(saw(f"{t.name}: {t.nans:,} NaN, {t.infs:,} infinite of {t.numel:,}", t.entry.file, t.name) for t in bad[:10])
    remedy = Remedy(text="Resume from the last checkpoint with finite optimizer state, or with fresh optimizer state and a warmup.")
    yield Hit(message=text, at=at(bad[0].entry.file, bad[0].name), evidence=facts, remedy=remedy)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN702", severity=Severity.ERROR, cause="checkpoint", needs=("autopsy",), check=check)
