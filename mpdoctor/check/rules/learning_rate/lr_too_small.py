"""A learning rate so small that nothing moves.

What it looks for
A learning rate below 1e-8, or below 1e-6 for LoRA.

Why training breaks
Steps below rounding or below the noise of the gradient leave the model where it was. Often a unit was lost (1e-10 against divergence).

When it is fine
Preference tuning at 1e-6 to 1e-7 is normal and not reported.

Example
```yaml hf_trainer bad
learning_rate: 1.0e-10
output_dir: out
bf16: true
```

Instead
```yaml hf_trainer good
learning_rate: 1.0e-5
output_dir: out
bf16: true
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of weights that a step does not change.

References
meta-pytorch/torchtune#2254, microsoft/DeepSpeedExamples#418
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    lr, limits = run.config.lr, run.thresholds
    if not lr.value or lr.value < 0 or run.config.lr_is_peak.value is False:
        return
    limit = limits.lr_tiny_lora if run.config.method.value in ("lora", "qlora") else limits.lr_tiny
    if lr.value < limit:
        yield Hit(message=f"{shown(lr)}: too small to move the weights", setting=lr, remedy=Remedy(text="Use 1e-5 (all weights) or 1e-4 (LoRA)."))


RULE = Rule(code="CFG310", severity=Severity.WARNING, needs=("lr",), check=_check)
