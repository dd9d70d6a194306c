"""A debugging mode left on.

What it looks for
`detect_anomaly`, or the HF Trainer's `debug: underflow_overflow`.

Why training breaks
It does not; it takes two to ten times as long.

When it is fine
While debugging.

Example
```yaml lightning bad
trainer: {precision: bf16-mixed, max_steps: 1000, detect_anomaly: true}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
```

Instead
```yaml lightning good
trainer: {precision: bf16-mixed, max_steps: 1000, detect_anomaly: false}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
```

How to confirm
Time ten steps without it.

References
Lightning's and transformers' documentation
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    anomaly = run.config.anomaly_mode
    if anomaly.value:
        fix = change(anomaly, "false") if anomaly.raw == "true" else delete(anomaly)
        yield Hit(message=f"{shown(anomaly)}: two to ten times slower", setting=anomaly, remedy=remedy("Switch it off after debugging.", fix))


RULE = Rule(code="CFG605", severity=Severity.INFO, cause="slow-precision", check=_check)
