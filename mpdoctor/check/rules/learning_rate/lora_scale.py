"""A LoRA scale that multiplies the step.

What it looks for
alpha/r (alpha/sqrt(r) with rsLoRA) above 8 together with a learning rate of 2e-4 or more.

Why training breaks
The adapter's product is multiplied by alpha/r, so a scale of 16 at 2e-4 steps as far as 2e-4 x 16 would at scale 1.

When it is fine
Small learning rates.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
lora_r: 8
lora_alpha: 256
bf16: true
learning_rate: 3.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
lora_r: 8
lora_alpha: 16
bf16: true
learning_rate: 3.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT --steps 10` with EXP101 (half the learning rate).

References
Follows from the definition of LoRA; TRL and LLaMA-Factory default to a scale of 2
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    rank, alpha, lr = config.lora_rank.value, config.lora_alpha, config.lr.value
    if not rank or rank < 1 or not alpha.value or lr is None or not run.language or config.lr_is_peak.value is False:
        return
    scale = alpha.value / (math.sqrt(rank) if config.lora_rank_stabilised.value else rank)
    if scale > run.thresholds.lora_scale and lr >= 2e-4:
        yield Hit(
            message=f"{shown(alpha)}: the adapter is multiplied by {scale:g}, at a learning rate of {lr:g}",
            setting=alpha,
            remedy=Remedy(text="Use alpha = 2 r, or lower the learning rate by the same factor."),
        )


RULE = Rule(code="CFG324", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="learning-rate", needs=("lr",), check=_check)
