"""A growth interval that is longer than the run, or very short.

What it looks for
A dynamic scaler's growth interval above the number of steps, or below 50.

Why training breaks
Longer than the run: after the first back-off the scale never recovers. Very short: the scale saws up and down, and each tooth is a skipped
step.

When it is fine
A short interval early in a long run, changed later.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "loss_scale_window": 20}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "loss_scale_window": 1000}
}
```

How to confirm
The loss scale in the log: one that only falls, or one that falls every few dozen steps.

References
DeepSpeed `loss_scale_window`; torch.amp.GradScaler `growth_interval`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    interval, steps = run.config.growth_interval, run.config.total_steps
    if run.computes_in != "fp16" or run.config.scaler.value != "dynamic" or not interval.value or interval.value <= 0:
        return
    if interval.value < run.thresholds.window_short:
        yield Hit(
            message=f"{shown(interval)}: the loss scale doubles every {interval.value} steps; each time it is too high, a step is lost",
            setting=interval,
            remedy=remedy("Use 500 to 2000.", *([change(interval, "1000")] if interval.explicit else [])),
        )
    elif interval.explicit and steps.value and interval.value > steps.value:
        yield Hit(
            message=f"{shown(interval)}: longer than the run of {steps.value} steps, so the loss scale never grows back after an overflow",
            setting=interval,
            remedy=Remedy(text="Use a tenth of the run, at least 50 steps."),
        )


RULE = Rule(code="CFG206", severity=Severity.WARNING, cause="loss-scaling", needs=("compute_dtype", "growth_interval"), check=_check)
