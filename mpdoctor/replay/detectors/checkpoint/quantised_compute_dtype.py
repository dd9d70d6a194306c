"""A 4-bit model computes in fp16 although the run, or the model, is bf16.

What it looks for
`bnb_4bit_compute_dtype: float16` in config.json's quantization_config, with settings or other weights in bf16.

Why training breaks
4-bit weights are widened to the compute dtype for each product. In fp16 the products of a bf16-born model overflow; the loss jumps, then
the log shows 0.0 (a filtered NaN), while every other setting says bf16.

When it is fine
On GPUs without bf16, for models known to stay in fp16's range.

Example
`bnb_4bit_compute_dtype is float16, the run computes in bfloat16`

Instead
Set `bnb_4bit_compute_dtype` to bfloat16.

How to confirm
Load with `bnb_4bit_compute_dtype=torch.bfloat16` and run the failing batch.

References
huggingface/trl#618; ymcui/Chinese-LLaMA-Alpaca-2#443; tloen/alpaca-lora#265.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for the setting."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    quantisation = evidence.checkpoint.config.get("quantization_config")
    if not isinstance(quantisation, dict) or str(quantisation.get("bnb_4bit_compute_dtype")).removeprefix("torch.") != "float16":
        return
    story = evidence.autopsy.dtypes
    other = "the run computes" if story.training == "bfloat16" else "the model is stored" if "bfloat16" in (story.main, story.config) else None
    if other is None:
        return
    text = f"bnb_4bit_compute_dtype is float16, {other} in bfloat16"
    place = at(evidence.checkpoint.path / "config.json", "quantization_config.bnb_4bit_compute_dtype")
    remedy = Remedy(text="Set bnb_4bit_compute_dtype to bfloat16.", patch='"bnb_4bit_compute_dtype": "bfloat16"')
    yield Hit(message=text, at=place, evidence=(saw(text, evidence.checkpoint.path / "config.json"),), remedy=remedy)


RULE: Rule[CheckpointEvidence] = Rule(
    code="RUN725", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="fp16-range", needs=("checkpoint", "autopsy"), check=check
)
