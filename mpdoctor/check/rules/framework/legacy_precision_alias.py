"""`precision: 16`, whose meaning has changed.

What it looks for
Lightning's old spellings 16, 32, 64 and bf16 for `precision`.

Why training breaks
They mean mixed precision today, with a warning; other versions and tools read them as "all in 16 bits".

When it is fine
NeMo 1, whose templates use them.

Example
```yaml lightning bad
trainer: {precision: 16, max_steps: 1000, gradient_clip_val: 1.0}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
```

Instead
```yaml lightning good
trainer: {precision: 16-mixed, max_steps: 1000, gradient_clip_val: 1.0}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
```

How to confirm
Lightning's warning at start-up.

References
Lightning `fabric/plugins/precision/precision.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.lightning_precision import ALIASES
from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("lightning"):
        precision = file.config.setting("lightning.precision")
        if precision.explicit and str(precision.value) in ALIASES:
            now = ALIASES[str(precision.value)]
            yield Hit(
                message=f"{shown(precision)} means `{now}` today",
                setting=precision,
                remedy=remedy(f"Write `{now}`.", change(precision, now)),
            )


RULE = Rule(code="CFG809", severity=Severity.INFO, check=_check)
