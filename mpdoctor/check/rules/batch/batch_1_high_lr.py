"""A batch of one or two samples at a high learning rate.

What it looks for
Two samples or fewer per step and GPU, with a learning rate above 5e-5 (all weights) or 3e-4 (LoRA).

Why training breaks
The gradient of one sample is mostly noise; at that rate a single odd sample throws the run off.

When it is fine
Long samples (packing), many GPUs.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
bf16: true
per_device_train_batch_size: 1
gradient_accumulation_steps: 1
learning_rate: 5.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
bf16: true
per_device_train_batch_size: 1
gradient_accumulation_steps: 16
learning_rate: 5.0e-4
output_dir: out
```

How to confirm
The same run with more accumulation steps.

References
microsoft/DeepSpeedExamples#531
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    micro, steps, lr = config.micro_batch, config.accumulation_steps, config.lr
    if micro.value is None or steps.value is None or lr.value is None or config.packing.value or not run.language:
        return
    many = config.world_size.value is not None and config.world_size.value > 2
    if micro.value * steps.value > run.thresholds.tiny_batch or many or not run.adam:
        return
    if lr.value > (3e-4 if run.trains_adapters else 5e-5):
        yield Hit(
            message=f"{shown(micro)}: {micro.value * steps.value} samples per step and GPU at a learning rate of {lr.value:g}",
            setting=micro,
            remedy=Remedy(text="Accumulate gradients over more samples, or lower the learning rate."),
        )


RULE = Rule(
    code="CFG409",
    severity=Severity.INFO,
    confidence=Confidence.MEDIUM,
    cause="learning-rate",
    needs=("micro_batch", "accumulation_steps", "lr"),
    check=_check,
)
