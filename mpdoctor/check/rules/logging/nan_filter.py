"""NaN losses are taken out of the log.

What it looks for
`logging_nan_inf_filter: true` (the HF Trainer's default): information where it is written, a warning in fp16 runs and where the log already
shows NaN.

Why training breaks
The filter replaces a NaN loss by the running mean in the log only. The step still goes back through the model and into the optimizer: the log
looks healthy while the weights are gone.

When it is fine
A single bad batch in a run that is watched otherwise.

Example
```yaml hf_trainer bad
fp16: true
logging_nan_inf_filter: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
fp16: true
logging_nan_inf_filter: false
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
Set it to false and look at the loss again.

References
transformers `trainer.py`; huggingface/trl#6702
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.history import broken_steps
from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    nan_filter = run.config.nan_filter
    serious = run.computes_in == "fp16" or broken_steps(run) is not None
    if nan_filter.value and (nan_filter.explicit or serious):
        yield Hit(
            message=f"{shown(nan_filter)}: NaN losses are replaced in the log, and still stepped on",
            setting=nan_filter,
            severity=Severity.WARNING if serious else Severity.INFO,
            remedy=remedy("Set `logging_nan_inf_filter: false`.", *([change(nan_filter, "false")] if nan_filter.explicit else [])),
        )


RULE = Rule(code="CFG601", severity=Severity.INFO, check=_check)
