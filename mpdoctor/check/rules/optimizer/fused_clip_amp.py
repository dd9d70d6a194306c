"""A fused optimizer with fp16 scaling and clipping.

What it looks for
Lightning's 16-mixed with a fused optimizer and gradient clipping.

Why training breaks
The fused optimizer unscales inside its step, so nothing can clip in between: Lightning raises.

When it is fine
bf16, or without clipping.

Example
```yaml lightning bad
trainer: {precision: 16-mixed, max_steps: 1000, gradient_clip_val: 1.0}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4, fused: true}}
```

Instead
```yaml lightning good
trainer: {precision: bf16-mixed, max_steps: 1000, gradient_clip_val: 1.0}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4, fused: true}}
```

How to confirm
Lightning stops at the first step.

References
Lightning-AI/pytorch-lightning#15501, #21435; pytorch/pytorch#96755
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    fused = config.optimizer_fused
    if run.dialect == "lightning" and fused.value and run.computes_in == "fp16" and config.scaler.value == "dynamic" and config.clip_norm.value:
        yield Hit(
            message=f"{shown(fused)}: a fused optimizer unscales inside its step, so Lightning refuses to clip with 16-mixed",
            setting=fused,
            remedy=remedy("Use a non-fused optimizer, or bf16-mixed.", change(fused, "false")),
        )


RULE = Rule(code="CFG319", severity=Severity.ERROR, cause="training-loop", check=_check)
