"""Evaluation casts the model to another 16-bit format than training uses.

What it looks for
`fp16_full_eval` in a bf16 run, or `bf16_full_eval` in an fp16 run.

Why training breaks
It does not, but its metrics do: a full evaluation in 16 bits casts every weight. What is fine in bf16 may be infinite in fp16, so that
the evaluation loss is NaN while the training loss is not, and the best checkpoint is chosen by noise.

When it is fine
Never on purpose.

Example
`the run computes in bfloat16 and evaluates in float16 (fp16_full_eval)`

Instead
Use the `_full_eval` flag of the training format, or none.

How to confirm
Evaluate once without the flag.

References
transformers: TrainingArguments.fp16_full_eval, bf16_full_eval.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw

_FLAGS = {"float16": ("bf16_full_eval", "bfloat16"), "bfloat16": ("fp16_full_eval", "float16")}


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the flag."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    training = evidence.autopsy.dtypes.training
    if training not in _FLAGS:
        return
    flag, dtype = _FLAGS[training]
    if evidence.settings.get(flag) is True:
        text = f"the run computes in {training} and evaluates in {dtype} ({flag})"
        yield Hit(message=text, at=at(evidence.checkpoint.path, flag), evidence=(saw(text, evidence.checkpoint.path, flag),), identity=flag)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN724", severity=Severity.WARNING, needs=("checkpoint", "autopsy"), check=check)
