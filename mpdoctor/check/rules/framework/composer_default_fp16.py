"""Composer's default precision.

What it looks for
A Composer config without `precision`, outside llm-foundry.

Why training breaks
Composer's Trainer computes in fp16 on a GPU when nobody chooses, not in fp32.

When it is fine
When fp16 is meant. llm-foundry's default is amp_bf16.

Example
```yaml llmfoundry bad
max_duration: 10ep
device_train_microbatch_size: 8
global_train_batch_size: 64
callbacks: {lr_monitor: {}}
optimizer: {name: decoupled_adamw, lr: 1.0e-4}
```

Instead
```yaml llmfoundry good
max_duration: 10ep
device_train_microbatch_size: 8
global_train_batch_size: 64
callbacks: {lr_monitor: {}}
precision: amp_bf16
optimizer: {name: decoupled_adamw, lr: 1.0e-4}
```

How to confirm
Composer prints its precision at start-up.

References
composer `trainer/trainer.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    precision = run.config.setting("composer.default_precision")
    if run.dialect == "llmfoundry" and precision.value == "amp_fp16":
        yield Hit(
            message="no `precision`: Composer computes in fp16 on a GPU",
            setting=precision,
            remedy=Remedy(text="Set `precision: amp_bf16`."),
        )


RULE = Rule(code="CFG817", severity=Severity.INFO, cause="fp16-range", check=_check)
