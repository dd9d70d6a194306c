"""A model that was saved in bf16 is trained in fp16.

What it looks for
Weights (or config.json) in bf16 and settings that compute in fp16.

Why training breaks
bf16 has fp32's range. A model that was trained in it may have activations of a hundred thousand and more, which no one noticed; in fp16
everything above 65504 is infinite. Weights below 6e-8 become zero.

When it is fine
Many bf16 models stay within fp16's range. The weights tell where they exceed it; for the activations `mpdoctor replay CHECKPOINT --precision fp16`
runs one forward pass in bf16 and counts what fp16 could not hold, module by module (RUN124).

Example
`weights are bfloat16, the run computes in float16; 0 weights above 65504`

Instead
Train in bf16 where the GPU has it, else in fp32.

How to confirm
`mpdoctor replay CHECKPOINT`: the origin is an fp16 overflow whose exact value is finite, and the experiment "bf16" removes it.

References
huggingface/transformers#36822 (Gemma 3 in fp16); facebookresearch/metaseq PR#254.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, percent, saw
from mpdoctor.replay.checkpoints import Role


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit, with how many weights leave fp16's range."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    story = evidence.autopsy.dtypes
    if evidence.compute != "float16" or "bfloat16" not in (story.main, story.config):
        return
    weights = evidence.autopsy.by_role(Role.WEIGHT)
    above, numel = sum(t.above_fp16 for t in weights), sum(t.numel for t in weights)
    flushed = sum(t.share(t.zero_in_fp16) * t.numel for t in weights) / numel if numel else 0.0
    text = f"the model was saved in bf16 and the run computes in fp16: {above:,} weights are infinite there and {percent(flushed)} of them zero"
    facts = (saw(f"stored {story.main}, config {story.config}, compute {evidence.compute}", evidence.checkpoint.path),)
    yield Hit(message=text, at=at(evidence.checkpoint.path), evidence=facts)


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN710", severity=Severity.WARNING, confidence=Confidence.LOW, cause="fp16-range", needs=("checkpoint", "autopsy"), check=check
)
