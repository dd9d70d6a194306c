"""An eps that protects from nothing in 16-bit state.

What it looks for
Adam's eps below 1e-12 with optimizer state in 16 bits.

Why training breaks
eps bounds the step where the second moment is small. Below 1e-12 it is far under the rounding of 16-bit moments, so steps on rarely used
weights are as large as rounding noise makes them.

When it is fine
In fp32 state on purpose, as some diffusion-transformer recipes do (1e-15): not reported.

Example
```yaml lightning bad
trainer:
  precision: bf16-true
  max_epochs: 3
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1.0e-4, eps: 1.0e-15}
```

Instead
```yaml lightning good
trainer:
  precision: bf16-mixed
  max_epochs: 3
optimizer:
  class_path: torch.optim.AdamW
  init_args: {lr: 1.0e-4, eps: 1.0e-15}
```

How to confirm
`mpdoctor replay CHECKPOINT` with EXP302 (eps 1e-6).

References
Follows from the bit layout.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    eps, state = run.config.eps, run.config.optimizer_state_dtype
    if run.adam and state.value in SIXTEEN_BIT and eps.value is not None and 0 <= eps.value < 1e-12:
        yield Hit(
            message=f"{shown(eps)}: too small to bound a step where the moments are kept in {state.value}",
            setting=eps,
            remedy=remedy("Use 1e-8 with fp32 state.", *([change(eps, "1.0e-8")] if eps.explicit else [])),
        )


RULE = Rule(
    code="CFG304", severity=Severity.WARNING, cause="model-numerics", needs=("optimizer_family", "eps", "optimizer_state_dtype"), check=_check
)
