"""LLaMA-Factory without a precision.

What it looks for
None of `bf16`, `fp16`, `pure_bf16` in a LLaMA-Factory config.

Why training breaks
The compute dtype is guessed when the model loads: bf16 if its config says so and the GPU has it, else fp16.

When it is fine
Models whose config says bfloat16, on a GPU with bf16.

Example
```yaml llamafactory bad
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: lora
template: llama3
cutoff_len: 2048
learning_rate: 1.0e-4
```

Instead
```yaml llamafactory good
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: lora
template: llama3
cutoff_len: 2048
bf16: true
learning_rate: 1.0e-4
```

How to confirm
LLaMA-Factory logs the compute dtype at start-up.

References
LLaMA-Factory `extras/misc.py`, infer_optim_dtype
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.location import FileSpan
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    asked = (config.fp16_requested, config.bf16_requested, config.setting("llamafactory.pure_bf16"))
    predicts = any(file.node("do_predict") is not None and file.node("do_train") is None for file in run.of("llamafactory"))
    if run.dialect == "llamafactory" and not predicts and not any(setting.value or (setting.at and not setting.known) for setting in asked):
        yield Hit(
            message="neither `bf16` nor `fp16`: the precision is guessed when the model loads, and may be fp16",
            setting=Setting(None, Origin.DERIVED, FileSpan(file=run.files[0].path, key="bf16")),
            identity="missing",
            remedy=Remedy(text="Add `bf16: true` (fp16 before Ampere)."),
        )


RULE = Rule(code="CFG818", severity=Severity.WARNING, cause="fp16-range", check=_check)
