"""Gemma in fp16.

What it looks for
Gemma 3, Gemma 3n and EmbeddingGemma in fp16: an error; Gemma 1 and 2: a warning, their evidence is weaker.

Why training breaks
Gemma's residual stream carries values up to 800,000. bf16 holds them, fp16 ends at 65504.

When it is fine
Never for Gemma 3; loaders that patch the model to fp32 where it overflows.

Example
```yaml hf_trainer bad
model_name_or_path: google/gemma-3-4b-it
use_peft: true
fp16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: google/gemma-3-4b-it
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` names the layer whose output passes 65504.

References
huggingface/transformers#36822, unslothai/unsloth#2044, google/gemma_pytorch#24
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    family = str(run.config.model_family.value or "")
    if not family.startswith("gemma") or run.computes_in != "fp16" or family == "gemma4":
        return
    yield Hit(
        message=f"{family} in fp16: activations up to 8e5 pass fp16's 65504",
        setting=run.config.compute_dtype,
        severity=Severity.WARNING if family in ("gemma", "gemma2") else None,
        remedy=remedy("Train in bf16; on a T4 or V100 in fp32.", *to_bf16(run)),
    )


RULE = Rule(code="CFG502", severity=Severity.ERROR, cause="fp16-range", needs=("model_family", "compute_dtype"), check=_check)
