"""Apex AMP at a level or in a company that breaks.

What it looks for
Apex opt_level O3, or Apex together with bf16 or with DeepSpeed's ZeRO.

Why training breaks
O3 is pure fp16: no fp32 weights, no loss scaling by default. Apex knows no bf16; DeepSpeed asserts that it is not combined with ZeRO.

When it is fine
O1 and O2 in old code bases; native AMP does the same today.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "steps_per_print": 10,
  "amp": {"enabled": true, "opt_level": "O3"}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "steps_per_print": 10,
  "fp16": {"enabled": true}
}
```

How to confirm
The framework's assertion, or the share of gradients that are exactly zero.

References
Apex documentation, opt levels; DeepSpeed `runtime/engine.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    level, config = run.config.apex_level, run.config
    if level.value == "O3":
        yield Hit(message=f"{shown(level)}: pure fp16 without master weights", setting=level, remedy=Remedy(text="Use native AMP, or O1."))
    elif level.known and config.bf16_requested.value:
        yield Hit(message="Apex AMP knows no bf16", setting=level, remedy=Remedy(text="Use native autocast for bf16."))
    elif level.known and run.of("deepspeed") and str(config.distributed.value) in ("zero1", "zero2", "zero3"):
        yield Hit(message="Apex AMP beside ZeRO: DeepSpeed refuses to start", setting=level, remedy=Remedy(text="Use DeepSpeed's own fp16 or bf16."))


RULE = Rule(code="CFG119", severity=Severity.ERROR, cause="low-precision-state", check=_check)
