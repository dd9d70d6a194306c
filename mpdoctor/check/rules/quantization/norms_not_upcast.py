"""Quantised training with 16-bit normalisation layers.

What it looks for
LLaMA-Factory with quantisation and without `upcast_layernorm`.

Why training breaks
Means and variances over thousands of values in 16 bits; LLaMA-Factory itself recommends fp32 here.

When it is fine
Most bf16 runs bear it.

Example
```yaml llamafactory bad
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: lora
template: llama3
cutoff_len: 2048
quantization_bit: 4
bf16: true
learning_rate: 1.0e-4
```

Instead
```yaml llamafactory good
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: lora
template: llama3
cutoff_len: 2048
quantization_bit: 4
upcast_layernorm: true
bf16: true
learning_rate: 1.0e-4
```

How to confirm
The loss of one batch with and without.

References
LLaMA-Factory's argument checks
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    upcast = run.config.setting("llamafactory.upcast_layernorm")
    if run.dialect == "llamafactory" and upcast.value is False and run.config.quantization.known:
        yield Hit(
            message=f"{shown(run.config.quantization)}: normalisation layers stay in 16 bits",
            setting=run.config.quantization,
            remedy=Remedy(text="Set `upcast_layernorm: true`."),
        )


RULE = Rule(code="CFG531", severity=Severity.INFO, cause="model-numerics", check=_check)
