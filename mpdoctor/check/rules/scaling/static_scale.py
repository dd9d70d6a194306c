"""A loss scale that never changes.

What it looks for
fp16 with a fixed loss scale above 1.

Why training breaks
Gradients shrink by orders of magnitude over a run and jump on single batches. A fixed scale cannot back off when they overflow (every such
step is lost, or NaN is stepped on), and cannot grow when they underflow.

When it is fine
Short runs that repeat one whose scale is known. Image models have been trained at 512 for years: information only.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "loss_scale": 1024}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "loss_scale": 0}
}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the window of usable loss scales; EXP201 replays with dynamic scaling.

References
DeepSpeed documentation, "FP16 training options"; mmengine AmpOptimWrapper
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale = run.config.static_scale
    if run.computes_in != "fp16" or run.config.scaler.value != "static" or not scale.value or scale.value <= 1:
        return
    # Convolutional nets have trained at 512 for years; their gradients move little.
    gentle = run.config.domain.value == "vision" and scale.value <= 4096
    dynamic = {"deepspeed": "0", "gpt_neox": "0"}.get(run.dialect)
    yield Hit(
        message=f"{shown(scale)}: a fixed loss scale of {scale.value:g} can neither back off when gradients overflow nor grow when they underflow",
        setting=scale,
        severity=Severity.INFO if gentle else None,
        remedy=remedy("Use dynamic loss scaling.", change(scale, dynamic) if dynamic else None),
    )


RULE = Rule(code="CFG202", severity=Severity.WARNING, cause="loss-scaling", needs=("compute_dtype", "scaler"), check=_check)
