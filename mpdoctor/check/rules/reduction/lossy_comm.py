"""Gradients compressed on the wire in an fp16 run.

What it looks for
A compressing communication hook or ZeRO++'s quantised gradients with fp16.

Why training breaks
The error adds to fp16's own; runs ended with "loss scale at minimum".

When it is fine
bf16 runs, after a comparison without it.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 3, "zero_quantized_gradients": true},
  "fp16": {"enabled": true}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 3},
  "fp16": {"enabled": true}
}
```

How to confirm
The same steps without compression.

References
microsoft/DeepSpeedExamples#617
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    lossy = run.config.lossy_communication
    if lossy.known and run.computes_in == "fp16":
        yield Hit(
            message=f"{shown(lossy)}: compressed gradients add their error to fp16's",
            setting=lossy,
            remedy=Remedy(text="Switch it off while the run is unstable."),
        )


RULE = Rule(code="CFG407", severity=Severity.WARNING, cause="low-precision-state", needs=("compute_dtype",), check=_check)
