"""Recent mixtures of experts in fp16.

What it looks for
gpt-oss, Qwen 3 MoE, Qwen 3.5, GLM-4 MoE and Gemma 4 in fp16.

Why training breaks
Loaders of these models keep lists of families whose gradients become NaN in fp16; for Gemma 4 maintainers disagree.

When it is fine
Reports of working fp16 runs exist for Gemma 4.

Example
```yaml hf_trainer bad
model_name_or_path: Qwen/Qwen3-30B-A3B
use_peft: true
fp16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: Qwen/Qwen3-30B-A3B
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` names the op in backward that first is not finite.

References
unslothai/unsloth `models/loader.py` (FORCE_FLOAT32)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule

_FAMILIES = ("gpt_oss", "qwen3_moe", "qwen3_5", "qwen3_5_moe", "glm4_moe", "gemma4")


def _check(run: CheckSubject) -> Iterator[Hit]:
    family = run.config.model_family.value
    if family in _FAMILIES and run.computes_in == "fp16":
        yield Hit(
            message=f"{family} in fp16 is known for NaN gradients",
            setting=run.config.compute_dtype,
            confidence=Confidence.LOW if family == "gemma4" else Confidence.MEDIUM,
            remedy=remedy("Train in bf16.", *to_bf16(run)),
        )


RULE = Rule(code="CFG503", severity=Severity.WARNING, cause="fp16-range", needs=("model_family", "compute_dtype"), check=_check)
