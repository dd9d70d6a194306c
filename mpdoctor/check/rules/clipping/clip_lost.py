"""Clipping that cannot happen, because the optimizer runs inside backward.

What it looks for
A clipping threshold together with an optimizer that steps during the backward pass.

Why training breaks
The norm of all gradients is known only when the backward pass is over, and by then the weights have been changed. torchtune and torchtitan
refuse to start.

When it is fine
Never.

Example
```yaml torchtune bad
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer}
optimizer: {_component_: torch.optim.AdamW, lr: 2.0e-5}
optimizer_in_bwd: true
clip_grad_norm: 1.0
dtype: bf16
```

Instead
```yaml torchtune good
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer}
optimizer: {_component_: torch.optim.AdamW, lr: 2.0e-5}
optimizer_in_bwd: false
clip_grad_norm: 1.0
dtype: bf16
```

How to confirm
The recipe refuses to start.

References
torchtune's full fine-tuning recipes; torchtitan `early_step_in_backward`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    inside, norm = run.config.optimizer_in_backward, run.config.clip_norm
    if inside.value and norm.value and norm.explicit:
        yield Hit(
            message=f"{shown(norm)} beside {shown(inside)}: there is no moment at which gradients could be clipped",
            setting=norm,
            related=(inside.at,) if inside.at else (),
            remedy=Remedy(text="Choose one of the two."),
        )


RULE = Rule(code="CFG408", severity=Severity.ERROR, cause="training-loop", check=_check)
