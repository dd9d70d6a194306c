"""The weights are saved in 16 bits beside fp32 optimizer state: the fp32 master weights are not in the checkpoint.

What it looks for
fp16 or bf16 weights, fp32 moments, and no master weights.

Why training breaks
The run updated fp32 master weights; only their 16-bit rounding was saved. A resumed run starts from the rounded weights: it loses the
small differences that many steps had summed up, and where the framework makes no new fp32 copy it goes on updating 16-bit weights.

When it is fine
For evaluation and export. One rounding is small; rounding at each of many restarts adds up.

Example
`weights are bfloat16 beside float32 moments, without master weights`

Instead
Resume from the sharded state (DeepSpeed optimizer shards, FSDP sharded state dict), or save the weights in fp32.

How to confirm
Compare the loss of the first step after resuming with the last one before.

References
DeepSpeed: stage3_gather_16bit_weights_on_model_save.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the checkpoint."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    story = evidence.autopsy.dtypes
    wide = story.moments and max(story.moments, key=lambda d: story.moments[d]) == "float32"
    if story.main not in ("float16", "bfloat16") or not wide or story.master or story.adapter:
        return
    text = f"weights are {story.main} beside float32 moments, without master weights: a resumed run starts from rounded weights"
    yield Hit(message=text, at=at(evidence.checkpoint.path), evidence=(saw(text, evidence.checkpoint.path),))


RULE: Rule[CheckpointEvidence] = Rule(code="RUN726", severity=Severity.INFO, needs=("checkpoint", "autopsy"), check=check)
