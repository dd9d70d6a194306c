"""Gradients accumulated in 16 bits.

What it looks for
A 16-bit accumulation dtype with 8 steps or more (warning), 64 or more (error).

Why training breaks
A bf16 sum of equal terms stops growing at 256 of them; long before, small micro-batch gradients are dropped against the sum.

When it is fine
One or two accumulation steps.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 64,
  "zero_optimization": {"stage": 1},
  "bf16": {"enabled": true},
  "data_types": {"grad_accum_dtype": "bf16"}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 64,
  "zero_optimization": {"stage": 1},
  "bf16": {"enabled": true},
  "data_types": {"grad_accum_dtype": "fp32"}
}
```

How to confirm
Compare with the gradient of the same batch in one piece.

References
The warning in DeepSpeed's engine; the stall at 256 is measured
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    dtype, steps = run.config.grad_accum_dtype, run.config.accumulation_steps
    if dtype.value not in SIXTEEN_BIT or steps.value is None or steps.value < run.thresholds.accumulation:
        return
    yield Hit(
        message=f"{steps.value} micro-batches are accumulated in {dtype.value}, which drops small gradients against the sum",
        setting=dtype if dtype.explicit else steps,
        severity=Severity.ERROR if steps.value >= run.thresholds.accumulation_error else None,
        related=(steps.at,) if steps.at else (),
        remedy=remedy("Accumulate in fp32.", change(dtype, "fp32") if dtype.raw in ("bf16", "fp16") else None),
    )


RULE = Rule(code="CFG405", severity=Severity.WARNING, cause="low-precision-state", needs=("accumulation_steps",), check=_check)
