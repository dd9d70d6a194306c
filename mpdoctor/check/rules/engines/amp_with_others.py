"""DeepSpeed's Apex block beside another precision or ZeRO.

What it looks for
`amp.enabled` together with fp16, bf16 or a ZeRO stage.

Why training breaks
DeepSpeed asserts or raises NotImplementedError.

When it is fine
Never.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "amp": {"enabled": true, "opt_level": "O1"}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true}
}
```

How to confirm
DeepSpeed stops at start-up.

References
DeepSpeed `runtime/engine.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("deepspeed"):
        node = file.node("amp.enabled")
        if node is None or node.value is not True:
            continue
        config = file.config
        beside = "fp16" if config.fp16_requested.value else "bf16" if config.bf16_requested.value else None
        beside = beside or ("ZeRO" if str(config.distributed.value) in ("zero1", "zero2", "zero3") else None)
        if beside:
            yield Hit(
                message=f"Apex `amp` beside {beside}: DeepSpeed refuses to start",
                setting=Setting(True, Origin.EXPLICIT, node.span("amp.enabled"), node.raw),
                remedy=Remedy(text="Use DeepSpeed's own fp16 or bf16 block."),
            )


RULE = Rule(code="CFG813", severity=Severity.ERROR, check=_check)
