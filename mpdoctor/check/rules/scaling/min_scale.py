"""A smallest loss scale that is not positive, above the start, or tiny.

What it looks for
A minimum of zero or less, a minimum above the initial scale, or one below 2^-6.

Why training breaks
DeepSpeed refuses a minimum of zero or less. Above the start, the scaler raises at its first overflow. A tiny one hides a divergence: the scale
sinks for hundreds of skipped steps before anybody is told; at 1 the error comes when it is due.

When it is fine
fairseq's default of 1e-4 is old habit there and only information.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "min_loss_scale": 0}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "min_loss_scale": 1}
}
```

How to confirm
The log: "Current loss scale already at minimum", or a scale far below 1.

References
DeepSpeed `runtime/precision_config.py`; fairseq `min_loss_scale`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    minimum, start = run.config.min_scale, run.config.init_scale
    if run.computes_in != "fp16" or run.config.scaler.value != "dynamic" or minimum.value is None:
        return
    advice = remedy("Set it to 1.", *([change(minimum, "1")] if minimum.explicit else []))
    if minimum.value <= 0:
        yield Hit(message=f"{shown(minimum)}: the smallest loss scale must be above 0", setting=minimum, remedy=advice)
    elif start.value and minimum.value > start.value:
        yield Hit(message=f"{shown(minimum)}: above the initial scale of {start.value:g}", setting=minimum, remedy=advice)
    elif minimum.value < 2**-6:
        yield Hit(
            message=f"{shown(minimum)}: the scale may sink to {minimum.value:g} unnoticed; gradients that overflow below 1 are not finite at all",
            setting=minimum,
            severity=Severity.INFO,
            remedy=advice,
        )


RULE = Rule(code="CFG207", severity=Severity.ERROR, cause="loss-scaling", needs=("compute_dtype", "min_scale"), check=_check)
