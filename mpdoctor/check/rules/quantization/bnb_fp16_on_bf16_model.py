"""4-bit layers that compute in fp16, for a model trained in bf16.

What it looks for
A bitsandbytes compute dtype of float16 for a model whose config says bfloat16 or whose family is known to need it, on a GPU that has bf16.

Why training breaks
The base model's activations overflow in fp16 as they would without quantisation.

When it is fine
On GPUs without bf16, with an eye on the loss.

Example
```yaml ms_swift bad gpu=a100
model: google/gemma-3-4b-it
torch_dtype: bfloat16
tuner_type: lora
dataset: [data.jsonl]
quant_method: bnb
quant_bits: 4
bnb_4bit_compute_dtype: float16
```

Instead
```yaml ms_swift good gpu=a100
model: google/gemma-3-4b-it
torch_dtype: bfloat16
tuner_type: lora
dataset: [data.jsonl]
quant_method: bnb
quant_bits: 4
bnb_4bit_compute_dtype: bfloat16
```

How to confirm
`mpdoctor replay CHECKPOINT` names the layer that overflows.

References
See gemma-fp16 and bf16-model-in-fp16.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    born_bf16 = config.model_dtype.value == "bf16" or str(config.model_family.value).startswith(
        ("gemma", "t5", "mt5", "umt5", "gpt_oss", "qwen3_moe")
    )
    if config.quant_compute_dtype.value == "fp16" and born_bf16 and (not run.gpus or run.at_least(8)):
        yield Hit(
            message=f"{shown(config.quant_compute_dtype)}: the base model was trained in bf16 and overflows in fp16",
            setting=config.quant_compute_dtype,
            remedy=Remedy(text="Set the compute dtype to bfloat16."),
        )


RULE = Rule(code="CFG523", severity=Severity.WARNING, cause="fp16-range", check=_check)
