"""bf16 gradients summed in bf16 by DeepSpeed on AMD GPUs.

What it looks for
DeepSpeed with ZeRO in bf16 on an AMD GPU without `communication_data_type: fp32`.

Why training breaks
Accelerate's authors report weights that turn NaN silently: an overflow in the bf16 reduction goes unnoticed there. Accelerate sets fp32
communication on its
own for that reason.

When it is fine
When Accelerate starts the run.

Example
```json deepspeed bad gpu=mi300x
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true}
}
```

Instead
```json deepspeed good gpu=mi300x
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true},
  "communication_data_type": "fp32"
}
```

How to confirm
`mpdoctor replay CHECKPOINT` looks for NaN weights in the checkpoints before.

References
accelerate `utils/dataclasses.py`, set_mixed_precision
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    reduce = run.config.reduce_dtype
    if run.made_by("amd") and run.of("deepspeed") and run.computes_in == "bf16" and reduce.value != "fp32" and not run.of("accelerate"):
        yield Hit(
            message="DeepSpeed in bf16 on an AMD GPU sums gradients in bf16, where overflows go unnoticed",
            setting=run.config.compute_dtype,
            remedy=Remedy(text='Set `"communication_data_type": "fp32"`.'),
        )


RULE = Rule(code="CFG120", severity=Severity.WARNING, cause="kernel", needs=("compute_dtype", "gpus"), check=_check)
