"""Buffers cast to 16 bits.

What it looks for
A buffer dtype of fp16 or bf16 in the engine's config.

Why training breaks
Buffers hold rotary frequencies, positions and running statistics. bf16 counts exactly only to 256; positions and angles drift beyond, and the
model sees tokens at wrong places.

When it is fine
Models without such buffers.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true},
  "data_types": {"buffer_dtype": "bf16"}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true}
}
```

How to confirm
Compare the rotary table at the last position with its fp32 value.

References
DeepSpeed `runtime/constants.py`, note on buffer_dtype
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    buffers = run.config.buffer_dtype
    if buffers.value in SIXTEEN_BIT:
        yield Hit(
            message=f"{shown(buffers)}: rotary frequencies, positions and running statistics lose accuracy in {buffers.value}",
            setting=buffers,
            remedy=remedy("Leave buffers in their own dtype.", delete(buffers)),
        )


RULE = Rule(code="CFG118", severity=Severity.WARNING, cause="model-numerics", check=_check)
