"""The check for NaN is switched off.

What it looks for
Megatron's `--no-check-for-nan-in-loss-and-grad`, DeepSpeed's `check_grad_overflow: false`.

Why training breaks
A NaN gradient is stepped on; every weight is NaN one step later, and the run goes on.

When it is fine
Benchmarks.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true, "check_grad_overflow": false}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true, "check_grad_overflow": true}
}
```

How to confirm
`mpdoctor replay CHECKPOINT` looks for NaN in the weights.

References
Megatron-LM and DeepSpeed arguments
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    checked = run.config.nan_check
    if checked.value is False and checked.explicit:
        fix = delete(checked) if checked.raw == "true" else change(checked, "true")
        yield Hit(
            message=f"{shown(checked)}: NaN gradients are stepped on, and the weights are lost",
            setting=checked,
            remedy=remedy("Leave the check on.", fix),
        )


RULE = Rule(code="CFG604", severity=Severity.WARNING, check=_check)
