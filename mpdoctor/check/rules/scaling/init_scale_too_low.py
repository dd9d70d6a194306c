"""A dynamic loss scale that starts too low.

What it looks for
An initial scale below 16 that grows only every 1000 steps or more.

Why training breaks
The scale doubles once per growth interval. From 1 to 2^12 takes twelve intervals; until then small gradients are zero.

When it is fine
With a short growth interval.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "initial_scale_power": 1, "loss_scale_window": 2000}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "initial_scale_power": 16, "loss_scale_window": 2000}
}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of gradients flushed to zero at this scale.

References
Follows from the growth rule of torch.amp.GradScaler and of DeepSpeed's scaler.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale, interval = run.config.init_scale, run.config.growth_interval
    if run.computes_in != "fp16" or run.config.scaler.value != "dynamic" or not scale.value or not interval.value:
        return
    if scale.value < run.thresholds.init_scale_low and interval.value >= 1000:
        power = scale.at is not None and str(scale.at.key).endswith("initial_scale_power")
        yield Hit(
            message=f"{shown(scale)}: starts at {scale.value:g} and doubles every {interval.value} steps; small gradients are zero until then",
            setting=scale,
            remedy=remedy("Start at 2^15 or 2^16.", *([change(scale, "16")] if power else [])),
        )


RULE = Rule(code="CFG205", severity=Severity.WARNING, cause="loss-scaling", needs=("compute_dtype", "init_scale", "growth_interval"), check=_check)
