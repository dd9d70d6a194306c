"""The loss scaler has sunk to one or below.

What it looks for
A checkpoint whose scaler holds a scale of 1 or less.

Why training breaks
At a scale of 1 overflowing gradients overflow without any scaling: the scaler has halved through repeated infinities and cannot help any more.

When it is fine
Runs whose scale was fixed at 1 on purpose.

Example
```json checkpoint_facts bad
{"global_step": 20, "log_history": [{"step": 10, "loss": 2.3, "grad_norm": 0.9}], "scale": 0.125}
```

Instead
```json checkpoint_facts good
{"global_step": 20, "log_history": [{"step": 10, "loss": 2.3, "grad_norm": 0.9}], "scale": 32768.0}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the window of usable loss scales.

References
torch.amp.GradScaler
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale = run.config.setting("checkpoint.scale")
    if scale.value is not None and scale.value <= 1:
        yield Hit(
            message=f"the loss scale is down to {scale.value:g}: gradients overflow at every scale",
            setting=scale,
            remedy=Remedy(text="Train in bf16, lower the learning rate, clip; `mpdoctor replay CHECKPOINT` finds the op that overflows."),
        )


RULE = Rule(code="CFG608", severity=Severity.WARNING, cause="loss-scaling", check=_check)
