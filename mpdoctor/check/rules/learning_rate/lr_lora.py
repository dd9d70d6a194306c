"""A learning rate too high for LoRA.

What it looks for
LoRA or QLoRA with an Adam-like optimizer above 1e-3 (2e-3 for models below 3 billion parameters): a warning; above 1e-2: an error.

Why training breaks
Adapters bear a higher rate than full fine-tuning because B starts at zero and only a low-rank product moves. The product grows with both factors
and with alpha/r; above 1e-3 it overshoots after some hundred steps rather than at once.

When it is fine
Prodigy-like optimizers (their `lr` is a multiplier); diffusion adapters of very low rank.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
lora_r: 16
bf16: true
learning_rate: 5.0e-3
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
lora_r: 16
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT --steps 10` with EXP101 and EXP102.

References
291 shipped LoRA and QLoRA configs: median 2e-4, 90th percentile 3e-4, highest 3e-3
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config, limits = run.config, run.thresholds
    lr = config.lr
    if config.method.value not in ("lora", "qlora") or not run.adam or config.lr_is_peak.value is False or not run.language:
        return
    limit = limits.lr_lora_small if config.n_params.value is not None and config.n_params.value < 3_000_000_000 else limits.lr_lora
    if lr.value is not None and lr.value > limit:
        yield Hit(
            message=f"{shown(lr)}: too high for LoRA; shipped recipes use 1e-4 to 3e-4",
            setting=lr,
            severity=Severity.ERROR if lr.value > limits.lr_lora_error else None,
            remedy=Remedy(text="Use 1e-4 to 3e-4."),
        )


RULE = Rule(code="CFG307", severity=Severity.WARNING, cause="learning-rate", needs=("lr", "method", "optimizer_family"), check=_check)
