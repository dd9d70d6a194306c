"""A fixed loss scale of 1 or less with fp16.

What it looks for
fp16 with a fixed loss scale between 0 and 1.

Why training breaks
It is the same as no scaling: gradients below 6e-8 become zero.

When it is fine
Never with fp16.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "loss_scale": 1.0}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "loss_scale": 0}
}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of gradients that were flushed to zero.

References
Follows from fp16's smallest subnormal number, 2^-24 = 6e-8.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale = run.config.static_scale
    if run.computes_in != "fp16" or run.config.scaler.value != "static" or not scale.value or not 0 < scale.value <= 1:
        return
    dynamic = {"deepspeed": "0", "gpt_neox": "0"}.get(run.dialect)
    yield Hit(
        message=f"{shown(scale)}: a fixed loss scale of {scale.value:g} is no scaling; fp16 gradients below 6e-8 become exactly zero",
        setting=scale,
        remedy=remedy("Use dynamic loss scaling.", change(scale, dynamic) if dynamic else None),
    )


RULE = Rule(code="CFG203", severity=Severity.ERROR, cause="loss-scaling", needs=("compute_dtype", "scaler"), check=_check)
