"""An fp16 run trains weights that are fp16 themselves.

What it looks for
fp16 compute (the run's settings) with model weights stored in fp16, without fp32 master weights and without adapters.

Why training breaks
Mixed precision needs fp32 weights: the scaler refuses to unscale fp16 gradients ("Attempting to unscale FP16 gradients"), and without a
scaler small gradients and small updates are lost and Adam's second moment is zero. transformers 5 makes it easy: it loads a model in
the dtype of its file unless told otherwise.

When it is fine
DeepSpeed, FSDP and Megatron keep fp32 master weights elsewhere. Frozen fp16 weights under a LoRA adapter in fp32 are fine.

Example
`weights are float16 and the run has fp16: true`

Instead
Load the model with `dtype=torch.float32` and let `fp16: true` (autocast) compute in 16 bits.

How to confirm
The experiment "fp32 master weights" of `mpdoctor replay`.

References
PyTorch torch/amp/grad_scaler.py; jzhang38/TinyLlama#32.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit when the settings say fp16 and the weights are."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    story = evidence.autopsy.dtypes
    elsewhere = story.master or story.adapter or evidence.settings.get("deepspeed") or evidence.settings.get("fsdp")
    if story.training != "float16" or story.main != "float16" or elsewhere:
        return
    text = "the weights are fp16 and the run has fp16 autocast with a loss scaler, which needs fp32 weights"
    remedy = Remedy(text="Load the model with dtype=torch.float32; autocast computes in fp16 anyway.")
    yield Hit(message=text, at=at(evidence.checkpoint.path), evidence=(saw("weights stored as float16", evidence.checkpoint.path),), remedy=remedy)


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN709", severity=Severity.WARNING, cause="low-precision-state", needs=("checkpoint", "autopsy"), check=check
)
