"""An accumulation dtype that DeepSpeed does not do without ZeRO.

What it looks for
`grad_accum_dtype` other than the model's dtype at ZeRO stage 0.

Why training breaks
DeepSpeed raises NotImplementedError.

When it is fine
With ZeRO stage 1 and above.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": 4,
  "steps_per_print": 10,
  "fp16": {"enabled": true},
  "data_types": {"grad_accum_dtype": "fp32"}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 1},
  "fp16": {"enabled": true},
  "data_types": {"grad_accum_dtype": "fp32"}
}
```

How to confirm
DeepSpeed stops at start-up.

References
DeepSpeed `runtime/engine.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("deepspeed"):
        config = file.config
        accumulation, model = config.grad_accum_dtype, config.compute_dtype.value
        if accumulation.explicit and config.distributed.value == "zero0" and model in SIXTEEN_BIT and accumulation.value != model:
            yield Hit(
                message=f"{shown(accumulation)} with a model in {model} and no ZeRO is not implemented in DeepSpeed",
                setting=accumulation,
                remedy=Remedy(text="Use ZeRO stage 1."),
            )


RULE = Rule(code="CFG811", severity=Severity.ERROR, check=_check)
