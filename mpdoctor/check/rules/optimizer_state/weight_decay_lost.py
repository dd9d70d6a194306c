"""Weight decay that bf16 rounds away.

What it looks for
bf16 weights without fp32 copies, and learning rate times weight decay below 2e-3.

Why training breaks
Decay multiplies each weight by 1 - lr x wd. In bf16 that factor is exactly 1 unless it differs by more than 2^-9: there is no decay at all.

When it is fine
With fp32 weights or copies.

Example
```yaml lightning bad
trainer: {precision: bf16-true, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4, weight_decay: 0.1}}
```

Instead
```yaml lightning good
trainer: {precision: bf16-mixed, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4, weight_decay: 0.1}}
```

How to confirm
The norm of the weights does not fall.

References
Nerogar/OneTrainer#996
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    decay, lr = config.weight_decay, config.lr
    if config.param_dtype.value != "bf16" or config.master_dtype.value != "none" or run.trains_adapters or config.compensated.value:
        return
    if decay.value and decay.value > 0 and lr.value is not None and 0 < lr.value * decay.value < 2e-3 and decay.explicit:
        yield Hit(
            message=f"{shown(decay)}: lr x decay = {lr.value * decay.value:.2g}, and bf16 rounds 1 - that to 1: no decay happens",
            setting=decay,
            remedy=Remedy(text="Keep fp32 weights or copies."),
        )


RULE = Rule(code="CFG316", severity=Severity.INFO, cause="low-precision-state", needs=("param_dtype", "lr"), check=_check)
