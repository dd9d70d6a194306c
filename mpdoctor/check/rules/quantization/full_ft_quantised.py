"""All weights trained, and they are quantised.

What it looks for
A quantised model without an adapter.

Why training breaks
Integer weights have no gradient: nothing trains, or the trainer refuses.

When it is fine
Training heads or norms beside a frozen quantised body.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_4bit: true
use_peft: false
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_4bit: true
use_peft: true
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
transformers: "You cannot perform fine-tuning on purely quantized models".

References
transformers Trainer; LLaMA-Factory's argument checks
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import FULL, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.quantization.value not in (None, "none") and config.method.value in FULL:
        yield Hit(
            message=f"{shown(config.quantization)} without an adapter: quantised weights have no gradient",
            setting=config.quantization,
            remedy=Remedy(text="Add LoRA (`use_peft: true`), or load the model unquantised."),
        )


RULE = Rule(code="CFG529", severity=Severity.ERROR, needs=("method",), check=_check)
