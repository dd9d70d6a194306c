"""An eps so large that Adam turns into scaled SGD.

What it looks for
Adam's eps of 1e-3 or more with state in fp32.

Why training breaks
Where the root of the second moment is below eps, the update is gradient / eps instead of gradient / its size: late in training, when gradients
are small, most weights hardly move.

When it is fine
Some recipes for reinforcement learning and vision use 1e-3 or 0.1 on purpose.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
optim: adamw_torch
adam_epsilon: 0.01
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
optim: adamw_torch
adam_epsilon: 1.0e-8
```

How to confirm
Compare eps with the root of the second moments that `mpdoctor replay CHECKPOINT` prints.

References
Follows from Adam's update rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    eps = run.config.eps
    if run.adam and eps.value is not None and eps.value >= run.thresholds.eps_large and run.config.optimizer_state_dtype.value not in SIXTEEN_BIT:
        yield Hit(
            message=f"{shown(eps)}: where the moments' root is below it, Adam becomes SGD with a small step",
            setting=eps,
            remedy=Remedy(text="Use 1e-8 to 1e-6 unless the recipe says otherwise."),
        )


RULE = Rule(code="CFG305", severity=Severity.INFO, needs=("optimizer_family", "eps"), check=_check)
