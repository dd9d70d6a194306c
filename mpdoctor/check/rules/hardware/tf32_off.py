"""fp32 matrix products with TF32 off.

What it looks for
fp32 compute on an NVIDIA GPU of compute capability 8.0 or later with TF32 switched off or left at PyTorch's default, which is off for
matrix products.

Why training breaks
It does not; it is up to eight times slower on an A100. TF32 reads fp32 operands with 10 bits of significand and sums in fp32, which training
seldom notices.

When it is fine
When fp32 is meant as the exact reference. With bf16 or fp16 compute the switch hardly matters, and nothing is said.

Example
```yaml hf_trainer bad gpu=a100
learning_rate: 2.0e-5
output_dir: out
bf16: false
tf32: false
```

Instead
```yaml hf_trainer good gpu=a100
learning_rate: 2.0e-5
output_dir: out
bf16: false
tf32: true
```

How to confirm
Time ten steps with `torch.set_float32_matmul_precision("high")`.

References
The docstring of `tf32` in transformers' TrainingArguments; PyTorch notes, "TensorFloat-32 on Ampere"
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute, tf32 = run.config.compute_dtype, run.config.tf32
    gpu = run.at_least(8)
    if compute.value != "fp32" or gpu is None or tf32.value or (not tf32.known and tf32.at is not None):
        return
    yield Hit(
        message=f"fp32 matrix products without TF32 on {gpu.name}: up to eight times slower than with it",
        setting=tf32 if tf32.explicit else compute,
        remedy=remedy(
            "Switch TF32 on (`tf32: true`, or `torch.set_float32_matmul_precision('high')`).", *([change(tf32, "true")] if tf32.explicit else [])
        ),
    )


RULE = Rule(code="CFG105", severity=Severity.INFO, cause="slow-precision", needs=("compute_dtype", "gpus"), check=_check)
