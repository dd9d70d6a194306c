"""Adam with weights and moments in fp16.

What it looks for
fp16 weights without fp32 master copies, updated by an Adam-like optimizer.

Why training breaks
An update below about 1/4096 of a weight is rounded away. Adam's second moment holds squared gradients: g^2 is below fp16's smallest number as
soon as g is below 2.4e-4, the moment is zero, and the update is a division by eps, or by zero.

When it is fine
Never for training. Adapters in fp32 over a frozen fp16 base are another matter and are not reported.

Example
```yaml lightning bad
trainer:
  precision: 16-true
  max_epochs: 3
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1.0e-4}
```

Instead
```yaml lightning good
trainer:
  precision: bf16-mixed
  max_epochs: 3
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1.0e-4}
```

How to confirm
`mpdoctor replay CHECKPOINT`: the share of lost updates, and EXP303 with fp32 master weights.

References
stas00/ml-engineering, training/dtype.md; pytorch/pytorch#8860; torchtune's refusal of fp16
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.precision_mode.value == "pure_lowp" and run.computes_in == "fp16" and run.adam and not run.trains_adapters:
        whole = config.optimizer_family.value == "adam"  # else the moments are quantised, and no fp16 numbers
        yield Hit(
            message=f"{shown(config.compute_dtype)}: Adam on fp16 weights {'and moments ' if whole else ''}loses updates below 1/4096 of a weight"
            + (", and g^2 underflows" if whole else ""),
            setting=config.compute_dtype,
            remedy=Remedy(text="Keep weights and moments in fp32 and compute under autocast."),
        )


RULE = Rule(code="CFG301", severity=Severity.ERROR, cause="low-precision-state", needs=("precision_mode", "optimizer_family"), check=_check)
