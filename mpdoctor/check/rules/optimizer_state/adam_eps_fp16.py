"""Adam's eps is zero in fp16.

What it looks for
An eps below 6e-8 where the optimizer's state is fp16, or fp16 weights are updated without master copies.

Why training breaks
1e-8 rounds to 0 in fp16 (the smallest number is 5.96e-8). Where a gradient is zero, Adam divides 0 by 0 + 0: NaN, often first in rows of an
embedding whose tokens did not occur.

When it is fine
With fp32 state, which is what autocast, DeepSpeed and Megatron keep: 1e-8 is right there and is not reported.

Example
```yaml lightning bad
trainer:
  precision: 16-true
  max_epochs: 3
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1.0e-4, eps: 1.0e-8}
```

Instead
```yaml lightning good
trainer:
  precision: 16-true
  max_epochs: 3
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1.0e-4, eps: 1.0e-5}
```

How to confirm
`mpdoctor replay CHECKPOINT` with EXP302 (eps 1e-6).

References
NVIDIA/apex#240, google-deepmind/optax#1754, keras-team/keras#11860
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    in_fp16 = config.optimizer_state_dtype.value == "fp16" or (config.param_dtype.value == "fp16" and config.master_dtype.value == "none")
    # Optimizers with quantised moments take them apart, and step, in fp32.
    if not in_fp16 or config.optimizer_family.value != "adam" or run.trains_adapters or config.eps.value is None or config.eps.value >= 5.96e-8:
        return
    blamed = config.eps if config.eps.explicit else config.param_dtype
    yield Hit(
        message=f"Adam's eps of {config.eps.value:g} is 0 in fp16, where the optimizer's state is kept: zero gradients give 0/0",
        setting=blamed,
        identity=str(config.eps.value),
        remedy=remedy("Use eps 1e-6 to 1e-4, or keep the state in fp32.", *([change(config.eps, "1.0e-6")] if config.eps.explicit else [])),
    )


RULE = Rule(code="CFG303", severity=Severity.ERROR, cause="model-numerics", needs=("optimizer_family", "eps"), check=_check)
