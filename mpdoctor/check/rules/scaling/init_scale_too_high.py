"""A dynamic loss scale that starts far above what fp16 can carry.

What it looks for
An initial scale of 2^24 or more (information from 2^20).

Why training breaks
Each halving costs a step without learning. From 2^32 down to 2^15 these are 17 steps (18 with DeepSpeed's hysteresis of 2): nothing in a
long run, much in a short one, and warm-up goes by meanwhile where the schedule counts skipped steps. Raising the start never helps against
"loss scale at minimum": the gradients are not finite then, whatever the scale.

When it is fine
Long runs; Megatron and NeMo start at 2^32 by default.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "initial_scale_power": 32}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "initial_scale_power": 16}
}
```

How to confirm
The first steps of the log are skipped (OVERFLOW) while the scale halves.

References
DeepSpeed `runtime/fp16/loss_scaler.py`; steps computed from its halving rule
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale, steps = run.config.init_scale, run.config.total_steps
    if run.computes_in != "fp16" or run.config.scaler.value != "dynamic" or not scale.value or scale.value < 2**20:
        return
    lost = math.ceil(math.log2(scale.value / 2**15)) + max((run.config.hysteresis.value or 1) - 1, 0)
    short = steps.value is None or steps.value < run.thresholds.short_run
    high = scale.value >= run.thresholds.init_scale_high and short and run.dialect not in ("megatron", "nemo")
    yield Hit(
        message=f"{shown(scale)}: the loss scale starts at 2^{math.log2(scale.value):.0f}; about {lost} steps are skipped until it is down to 2^15",
        setting=scale,
        severity=Severity.WARNING if high else Severity.INFO,
        remedy=remedy("Start at 2^16.", *([change(scale, "16")] if scale.at and str(scale.at.key).endswith("initial_scale_power") else [])),
    )


RULE = Rule(code="CFG204", severity=Severity.WARNING, cause="loss-scaling", needs=("compute_dtype", "init_scale"), check=_check)
