"""The learning-rate schedule advances on skipped steps.

What it looks for
fp16 with a scaler and a per-step schedule in Lightning, which steps the scheduler whether or not the optimizer stepped.

Why training breaks
While the loss scale settles, steps are skipped; warm-up and decay run ahead of the weights by as many.

When it is fine
Long runs, where a dozen steps do not matter. The HF Trainer and Accelerate step the schedule only with the optimizer.

Example
```yaml lightning bad
trainer: {precision: 16-mixed, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
lr_scheduler: {class_path: torch.optim.lr_scheduler.OneCycleLR, init_args: {max_lr: 1.0e-4, total_steps: 1000}}
```

Instead
```yaml lightning good
trainer: {precision: bf16-mixed, max_steps: 1000}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 1.0e-4}}
lr_scheduler: {class_path: torch.optim.lr_scheduler.OneCycleLR, init_args: {max_lr: 1.0e-4, total_steps: 1000}}
```

How to confirm
PyTorch's warning "lr_scheduler.step() before optimizer.step()".

References
Lightning-AI/pytorch-lightning#16228, #21339; pytorch/pytorch#44511, #55585
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if run.dialect == "lightning" and run.computes_in == "fp16" and config.scaler.value == "dynamic" and config.schedule.known:
        yield Hit(
            message=f"{shown(config.schedule)}: Lightning advances the schedule on steps that the fp16 scaler skipped",
            setting=config.schedule,
            remedy=Remedy(text="Use bf16-mixed, or step the scheduler by hand when the optimizer stepped."),
        )


RULE = Rule(code="CFG210", severity=Severity.INFO, cause="loss-scaling", needs=("compute_dtype", "schedule"), check=_check)
