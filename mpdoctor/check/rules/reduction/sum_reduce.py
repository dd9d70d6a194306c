"""Gradients summed over ranks instead of averaged.

What it looks for
`gradient_allreduce_op: sum`.

Why training breaks
The gradient grows with the number of ranks, and with it clipping and the effective learning rate.

When it is fine
Losses that are already divided by the global number of tokens.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "gradient_allreduce_op": "sum",
  "bf16": {"enabled": true}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "gradient_allreduce_op": "mean",
  "bf16": {"enabled": true}
}
```

How to confirm
The gradient norm on one and on two ranks.

References
DeepSpeed `runtime/constants.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    operation = run.config.allreduce_op
    if operation.value == "sum":
        yield Hit(
            message=f"{shown(operation)}: the gradient grows with the number of ranks",
            setting=operation,
            remedy=Remedy(text="Use mean, unless the loss is divided by the global number of tokens."),
        )


RULE = Rule(code="CFG406", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="learning-rate", check=_check)
