"""A scaler that waits through many overflows before it lowers the scale.

What it looks for
A hysteresis above 8.

Why training breaks
Each overflowed step is thrown away. With a hysteresis of n, n of them pass before the scale falls once.

When it is fine
Runs where single overflows come from rare batches and the scale should stay.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "hysteresis": 20}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "hysteresis": 2}
}
```

How to confirm
Count the skipped steps between two halvings in the log.

References
DeepSpeed `runtime/fp16/loss_scaler.py`, update_scale
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    hysteresis = run.config.hysteresis
    if run.computes_in == "fp16" and hysteresis.value is not None and hysteresis.value > run.thresholds.hysteresis:
        yield Hit(
            message=f"{shown(hysteresis)}: {hysteresis.value} overflowed steps are lost before the loss scale falls once",
            setting=hysteresis,
            remedy=remedy("Use 2.", change(hysteresis, "2")),
        )


RULE = Rule(code="CFG208", severity=Severity.INFO, cause="loss-scaling", needs=("compute_dtype", "hysteresis"), check=_check)
