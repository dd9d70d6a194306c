"""A moving average of the weights kept in 16 bits.

What it looks for
An average of the weights in bf16 or fp16 with a decay of 0.99 or more.

Why training breaks
Each update moves the average by 1 % or less of the difference; 16 bits round most of that away. Toward a weight of 1.0 a bf16 average with decay
0.999
stops at 0.25.

When it is fine
Averages in fp32, which is what trainers keep as a rule.

Example
```python opensora bad
dtype = 'bf16'
plugin = 'zero2'
ema_decay = 0.999
ema_dtype = 'bf16'
optim = dict(cls='HybridAdam', lr=1e-4)
```

Instead
```python opensora good
dtype = 'bf16'
plugin = 'zero2'
ema_decay = 0.999
optim = dict(cls='HybridAdam', lr=1e-4)
```

How to confirm
`mpdoctor replay CHECKPOINT` compares the average with the weights.

References
Computed: decay 0.99, 0.999, 0.9999 stop at 0.80, 0.25, 0.03 in bf16 and at 0.98, 0.76, 0.25 in fp16
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    dtype, decay = run.config.ema_dtype, run.config.ema_decay
    if dtype.value in SIXTEEN_BIT and decay.value is not None and decay.value >= 0.99:
        yield Hit(
            message=f"{shown(dtype)}: an average with decay {decay.value:g} stalls far from the weights in {dtype.value}",
            setting=dtype,
            remedy=Remedy(text="Keep the average in fp32."),
        )


RULE = Rule(code="CFG317", severity=Severity.WARNING, cause="low-precision-state", check=_check)
