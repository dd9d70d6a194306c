"""Adapter weights are fp16, or adapters of one model have different dtypes.

What it looks for
Adapter weights (LoRA and its kin) stored in fp16 for a run in fp16, or in more than one floating-point dtype.

Why training breaks
Adapters are the weights that are trained. In fp16 they have all troubles of fp16 weights: the scaler refuses their gradients, small
updates are lost. When one adapter is loaded in another dtype than the rest, matrix products mix dtypes and raise, or one adapter alone
is unstable.

When it is fine
For inference. bf16 adapters in a bf16 run train, with bf16's precision.

Example
`adapter weights: 24 tensors float32, 24 tensors float16`

Instead
Let PEFT cast adapters to fp32 (`autocast_adapter_dtype=True`, its default for new adapters).

How to confirm
The experiment "fp32 master weights" of `mpdoctor replay`.

References
huggingface/peft#1090, PR#1706, #2421.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw
from mpdoctor.replay.checkpoints import Role


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for fp16 adapters of an fp16 run, or for mixed dtypes."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    story = evidence.autopsy.dtypes
    mixed = len(story.adapter) > 1
    fp16 = story.training == "float16" and "float16" in story.adapter
    if not mixed and not fp16:
        return
    counts: dict[str, int] = {}
    entries = evidence.checkpoint.by_role(Role.ADAPTER)
    for entry in entries:
        counts[entry.dtype] = counts.get(entry.dtype, 0) + 1
    shown = ", ".join(f"{count} tensors {dtype}" for dtype, count in counts.items())
    text = f"adapter weights differ in dtype ({shown})" if mixed else f"adapter weights are fp16 in an fp16 run ({shown}): they are what is trained"
    remedy = Remedy(text="Load adapters with autocast_adapter_dtype=True, so that all are trained in fp32.")
    yield Hit(message=text, at=at(entries[0].file), evidence=(saw(shown, entries[0].file),), remedy=remedy, identity=shown)


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN711", severity=Severity.WARNING, cause="low-precision-state", needs=("checkpoint", "autopsy"), check=check
)
