"""Weights in one 16-bit format, autocast in the other.

What it looks for
Weights loaded in fp16 with bf16 autocast, or in bf16 with fp16 autocast.

Why training breaks
Every matrix product rounds twice: fp16 weights lose range on the way to bf16's exponent only where they are subnormal, but bf16 weights in
fp16 compute overflow above 65504. Operations that autocast leaves alone meet both formats and stop ("expected Half but found BFloat16").

When it is fine
Never on purpose; quantised storage formats are another matter.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
torch_dtype: float16
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
torch_dtype: bfloat16
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` prints which dtype each module ran in.

References
unslothai/unsloth `models/rl.py`; Axolotl's validation of mixed dtypes
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    param, compute = run.config.param_dtype, run.config.compute_dtype
    if param.value in SIXTEEN_BIT and compute.value in SIXTEEN_BIT and param.value != compute.value and param.explicit:
        yield Hit(
            message=f"{shown(param)}: weights in {param.value}, compute in {compute.value}; dtype-mismatch errors or double rounding",
            setting=param,
            related=(compute.at,) if compute.at else (),
            remedy=Remedy(text=f"Load the weights in fp32 or in {compute.value}."),
        )


RULE = Rule(code="CFG111", severity=Severity.WARNING, cause="fp16-range", needs=("param_dtype", "compute_dtype"), check=_check)
