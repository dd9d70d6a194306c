"""DeepSpeed's param_dtype against its enabled mode.

What it looks for
`data_types.param_dtype` that is not the dtype of the enabled block.

Why training breaks
DeepSpeed asserts that they agree.

When it is fine
Never.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true},
  "data_types": {"param_dtype": "fp16"}
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
DeepSpeed's assertion at start-up.

References
DeepSpeed `runtime/config.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.dtypes import dtype_name
from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("deepspeed"):
        node, mode = file.node("data_types.param_dtype"), file.config.compute_dtype.value
        if node is None or not isinstance(node.value, str) or mode is None:
            continue
        if dtype_name(node.value) not in (mode, None):
            setting = Setting(node.value, Origin.EXPLICIT, node.span("data_types.param_dtype"), node.raw)
            yield Hit(
                message=f"{shown(setting)}, but the enabled mode is {mode}: DeepSpeed refuses to start",
                setting=setting,
                remedy=remedy("Take it out.", delete(setting)),
            )


RULE = Rule(code="CFG812", severity=Severity.ERROR, check=_check)
