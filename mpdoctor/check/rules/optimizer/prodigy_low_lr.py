"""Prodigy or D-Adaptation with a small learning rate.

What it looks for
An optimizer of that family with a rate of 0.1 or less.

Why training breaks
`lr` is a multiplier of the rate that these optimizers estimate; 1.0 is its neutral value. 1e-4 makes every step ten thousand times too small.

When it is fine
Multipliers between 0.1 and 1.

Example
```toml kohya bad
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
optimizer_type = "Prodigy"
learning_rate = 0.0001
mixed_precision = "bf16"
```

Instead
```toml kohya good
network_module = "networks.lora"
network_dim = 16
train_data_dir = "data"
optimizer_type = "Prodigy"
learning_rate = 1.0
mixed_precision = "bf16"
```

How to confirm
The optimizer's estimate d in the log.

References
kohya-ss/sd-scripts warns at 0.1 and below (`library/train_util.py`)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    lr = run.config.lr
    if run.config.optimizer_family.value == "prodigy_like" and lr.value is not None and 0 < lr.value <= 0.1:
        yield Hit(
            message=f"{shown(lr)}: for {run.config.optimizer.value} this is a multiplier, and its neutral value is 1.0",
            setting=lr,
            remedy=remedy("Use 1.0.", change(lr, "1.0")),
        )


RULE = Rule(code="CFG322", severity=Severity.WARNING, needs=("optimizer_family", "lr"), check=_check)
