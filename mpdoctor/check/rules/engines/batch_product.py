"""Batch sizes that do not multiply.

What it looks for
DeepSpeed's train_batch_size against micro batch x accumulation x ranks, where all are known.

Why training breaks
DeepSpeed asserts the product.

When it is fine
Never.

Example
```yaml accelerate bad
# file: accelerate.yaml
distributed_type: DEEPSPEED
num_processes: 8
mixed_precision: bf16
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_batch_size": 100,
 "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "bf16": {"enabled": true}}
```

Instead
```yaml accelerate good
# file: accelerate.yaml
distributed_type: DEEPSPEED
num_processes: 8
mixed_precision: bf16
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_batch_size": 64,
 "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "bf16": {"enabled": true}}
```

How to confirm
DeepSpeed's assertion at start-up.

References
DeepSpeed `runtime/config.py`, _batch_assertion
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("deepspeed"):
        total, micro, steps = (file.config.setting(name) for name in ("global_batch", "micro_batch", "accumulation_steps"))
        world = run.config.world_size
        if not total.explicit or micro.value is None or steps.value is None:
            continue
        product = micro.value * steps.value * (world.value or 1)
        if world.value is not None and product != total.value:
            yield Hit(
                message=f"{shown(total)}, but {micro.value} x {steps.value} x {world.value} ranks = {product}: DeepSpeed refuses to start",
                setting=total,
                remedy=remedy(f"Write {product}, or leave it out.", change(total, str(product))),
            )
        elif world.value is None and product and total.value is not None and total.value % product:
            yield Hit(
                message=f"{shown(total)} is no multiple of {micro.value} x {steps.value}, whatever the number of ranks",
                setting=total,
                remedy=Remedy(text="Make it micro batch x accumulation x ranks."),
            )


RULE = Rule(code="CFG810", severity=Severity.ERROR, check=_check)
