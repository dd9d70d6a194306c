"""fp16 training without loss scaling.

What it looks for
fp16 compute with no gradient scaler: Lightning's `16-true`, torchtune's `dtype: fp16`, FSDP in fp16 without a sharded scaler.

Why training breaks
fp16's smallest number is 6e-8. Gradients of deep networks lie below it in large part and become exactly zero; between 6e-8 and 6e-5 they
keep only some of their bits. The loss falls slowly or not at all, and nothing is ever reported. Scaling the loss by 2^10 to 2^16 moves the
gradients into the range and costs nothing.

When it is fine
Inference, and frozen parts of a model.

Example
```yaml lightning bad
trainer:
  precision: 16-true
  max_epochs: 3
model:
  class_path: my.Model
  init_args: {lr: 1.0e-4}
```

Instead
```yaml lightning good
trainer:
  precision: 16-mixed
  max_epochs: 3
model:
  class_path: my.Model
  init_args: {lr: 1.0e-4}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of gradients that were flushed to zero, and EXP201 turns dynamic scaling on.

References
pytorch/torchtune recipes (refusal of fp16), volcengine/verl#6150, Micikevicius et al. 2018, "Mixed Precision Training"
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute, scaler = run.config.compute_dtype, run.config.scaler
    if compute.value != "fp16" or scaler.value != "none":
        return
    yield Hit(
        message=f"{shown(compute)}: fp16 without loss scaling; gradients below 6e-8 become exactly zero",
        setting=compute if compute.explicit else scaler,
        remedy=Remedy(text="Use fp16 with a dynamic loss scaler (autocast with GradScaler, `16-mixed`), or bf16, which needs none."),
    )


RULE = Rule(code="CFG201", severity=Severity.ERROR, cause="loss-scaling", needs=("compute_dtype", "scaler"), check=_check)
