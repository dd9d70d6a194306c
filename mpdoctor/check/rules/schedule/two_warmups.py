"""Warm-up given twice.

What it looks for
Both a number of steps and a share.

Why training breaks
The number wins without a message, so the share that somebody tunes does nothing.

When it is fine
When both mean the same.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
warmup_steps: 100
warmup_ratio: 0.1
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
warmup_ratio: 0.1
```

How to confirm
The learning rate in the log over the first steps.

References
transformers 4 `TrainingArguments.get_warmup_steps`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    steps, ratio = run.config.warmup_steps, run.config.warmup_ratio
    if steps.explicit and ratio.explicit and steps.value and ratio.value:
        yield Hit(
            message=f"{shown(ratio)} is ignored: {shown(steps)} wins",
            setting=ratio,
            related=(steps.at,) if steps.at else (),
            remedy=remedy("Keep one of them.", delete(ratio)),
        )


RULE = Rule(code="CFG313", severity=Severity.INFO, check=_check)
