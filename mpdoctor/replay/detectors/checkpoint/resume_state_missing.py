"""Resuming from this checkpoint would start without optimizer, scaler or random state.

What it looks for
A checkpoint with a training log or settings but no optimizer state; an fp16 run's checkpoint without scaler state.

Why training breaks
Without optimizer state Adam starts with empty moments: the first updates are as large as the learning rate whatever the gradient,
without warmup. Without scaler state the loss scale starts at 65536 again and the first steps are skipped while it searches.

When it is fine
For evaluation, export and fine-tuning from these weights (`save_only_model: true`).

Example
`fp16 run without scaler.pt: the loss scale starts at 65536 again`

Instead
Keep full checkpoints to resume from, or warm up again.

How to confirm
`mpdoctor replay CHECKPOINT` replays with fresh state and says so.

References
transformers: TrainingArguments.save_only_model.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints.checkpoint import MOMENT_ROLES


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for what is missing."""
    assert evidence.checkpoint is not None
    checkpoint = evidence.checkpoint
    if checkpoint.training_args is None and checkpoint.trainer_state is None:
        return
    missing = []
    if not checkpoint.param_groups and not checkpoint.by_role(*MOMENT_ROLES):
        missing.append("optimizer state")
    if evidence.settings.get("fp16") is True and checkpoint.scaler is None and not evidence.settings.get("use_cpu"):
        missing.append("loss scaler state (the scale starts at 65536 again)")
    if missing:
        text = f"a resumed run would start without {' and '.join(missing)}"
        yield Hit(message=text, at=at(checkpoint.path), evidence=(saw(text, checkpoint.path),), identity=",".join(missing))


RULE: Rule[CheckpointEvidence] = Rule(code="RUN718", severity=Severity.INFO, needs=("checkpoint",), check=check)
