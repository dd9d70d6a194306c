"""config.json and the stored weights disagree about the dtype.

What it looks for
The `dtype` (or `torch_dtype`) of config.json against the dtype of most stored weight bytes.

Why training breaks
transformers 5 loads a model in the dtype that config.json names, transformers 4 with `torch_dtype="auto"` too. fp32 weights under a config
of fp16 lose their range and precision while loading, without a word; bf16 weights under a config of fp16 become infinite where
they exceed 65504. Outputs differ from those of training.

When it is fine
Quantised models keep some tensors in other dtypes on purpose. An fp32 file under a bf16 config is what FSDP writes for a bf16 run; casting
it once to bf16 is what the next loader will do, and is noted, not blamed.

Example
`config.json says float16, the weights are bfloat16`

Instead
Write the stored dtype into config.json, or name the dtype when loading (`dtype=torch.bfloat16`).

How to confirm
Compare one batch's outputs before and after saving.

References
huggingface/transformers#32265, #33780 (FSDP saves fp32 for a bf16 run), #31861 (saving changes the config's dtype).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw

_JUDGED = ("float32", "float16", "bfloat16")


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """Say what the next loader will do with the weights."""
    assert evidence.autopsy is not None and evidence.checkpoint is not None
    story = evidence.autopsy.dtypes
    config, stored = story.config, story.main
    if config not in _JUDGED or stored not in _JUDGED or config == stored or "quantization_config" in evidence.checkpoint.config:
        return
    if config == "float16":
        above = sum(t.above_fp16 for t in evidence.autopsy.tensors if t.entry.dtype == stored)
        effect = "the next loader casts them to fp16" + (f", where {above:,} of them are infinite" if above else " (largest number 65504)")
        severity = Severity.ERROR if above else Severity.WARNING
    elif config == "bfloat16":
        effect = "the next loader casts them to bf16 and keeps 8 significant bits"
        severity = Severity.INFO if stored == "float32" else Severity.WARNING
    else:
        effect = "the next loader widens them to fp32: twice the memory, and the values stay those of 16 bits"
        severity = Severity.INFO if stored == "bfloat16" else Severity.WARNING
    text = f"config.json says {config}, the weights are {stored}: {effect}"
    facts = (saw(f"stored bytes by dtype: {', '.join(f'{d} {n:,}' for d, n in story.stored.items())}", evidence.checkpoint.path),)
    remedy = Remedy(text=f'Set "dtype": "{stored}" in config.json, or pass dtype=torch.{stored} when loading.')
    place = at(evidence.checkpoint.path / "config.json", "dtype")
    yield Hit(message=text, at=place, evidence=facts, remedy=remedy, severity=severity, identity=f"{config}/{stored}")


RULE: Rule[CheckpointEvidence] = Rule(code="RUN708", severity=Severity.WARNING, cause="checkpoint", needs=("checkpoint", "autopsy"), check=check)
