"""A log with gaps in which a run can break unseen.

What it looks for
Logging every 500 steps or less often, in a run of fewer than 5000 steps.

Why training breaks
A spike, and what led to it, falls between two entries.

When it is fine
Long runs with other monitoring.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_steps: 2000
logging_steps: 500
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_steps: 2000
logging_steps: 10
```

How to confirm
Count the entries of the log.

References
The HF Trainer logs every 500 steps by default
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    every, total = run.config.log_every, run.config.total_steps
    if every.value is not None and total.value is not None and every.value >= run.thresholds.sparse_logging and total.value < 5000:
        yield Hit(
            message=f"{shown(every)}: {max(total.value // every.value, 0)} entries for a run of {total.value} steps",
            setting=every,
            remedy=remedy("Log every 10 steps.", *([change(every, "10")] if every.explicit else [])),
        )


RULE = Rule(code="CFG606", severity=Severity.INFO, needs=("total_steps",), check=_check)
