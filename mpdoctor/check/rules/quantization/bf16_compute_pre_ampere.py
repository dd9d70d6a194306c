"""4-bit layers that compute in bf16 on a GPU without bf16.

What it looks for
A bitsandbytes compute dtype of bfloat16 below compute capability 8.0.

Why training breaks
Each dequantised product is emulated through fp32.

When it is fine
Never on a T4 or V100.

Example
```yaml hf_trainer bad gpu=t4
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_4bit: true
use_peft: true
fp16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good gpu=t4
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: float16
load_in_4bit: true
use_peft: true
fp16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor gpu` shows what the card computes.

References
See bf16-pre-ampere.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    quant, gpu = run.config.quant_compute_dtype, run.below(8)
    if quant.value == "bf16" and gpu is not None:
        yield Hit(
            message=f"{shown(quant)}: {capability(gpu)} emulates bf16, in every quantised layer",
            setting=quant,
            remedy=Remedy(text="Use float16 as compute dtype."),
        )


RULE = Rule(code="CFG532", severity=Severity.WARNING, cause="slow-precision", needs=("gpus",), check=_check)
