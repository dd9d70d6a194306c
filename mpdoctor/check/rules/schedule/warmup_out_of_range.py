"""Warm-up that takes most of the run, or more than all of it.

What it looks for
Warm-up steps at or above the total, or a warm-up share above one half (an error above 1).

Why training breaks
The learning rate never reaches its peak, or reaches it when the run is over. Often a number of steps was written where a share is meant, or the
other way
round.

When it is fine
Warm-up of a schedule that is continued by another run; a few steps to see whether everything runs.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_steps: 500
warmup_steps: 1000
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_steps: 500
warmup_steps: 20
```

How to confirm
The learning rate in the log at the last step.

References
transformers `optimization.py`; the change of meaning of `warmup_steps` in transformers 5
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

_TRIAL = 30
"""Steps below which a run only tries whether everything works."""


def _check(run: CheckSubject) -> Iterator[Hit]:
    steps, ratio, total = run.config.warmup_steps, run.config.warmup_ratio, run.config.total_steps
    if steps.explicit and steps.value and total.explicit and total.value and steps.value >= total.value:
        yield Hit(
            message=f"{shown(steps)}: the run has {total.value} steps, so the learning rate never gets past warm-up",
            setting=steps,
            severity=Severity.INFO if total.value < _TRIAL else None,
            related=(total.at,) if total.at else (),
            remedy=Remedy(text="Use 1 to 3 % of the steps."),
        )
    if ratio.explicit and ratio.value is not None and ratio.value > run.thresholds.warmup_share and not steps.value:
        yield Hit(
            message=f"{shown(ratio)}: warm-up takes {ratio.value:.0%} of the run",
            setting=ratio,
            severity=Severity.ERROR if ratio.value > 1 else None,
            remedy=Remedy(text="Use 0.01 to 0.1."),
        )


RULE = Rule(code="CFG312", severity=Severity.WARNING, check=_check)
