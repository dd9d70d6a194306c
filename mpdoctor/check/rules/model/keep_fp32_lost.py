"""Modules that must stay in fp32, under fp16 autocast.

What it looks for
fp32 weights under fp16 autocast for families that list modules to keep in fp32 (BLIP-2, InstructBLIP, Kosmos 2.5, RWKV; T5 and its kin have a
rule of their own).

Why training breaks
Transformers honours that list only when the model is loaded in fp16. Under autocast from fp32 weights the modules run in fp16 after all, and
overflow.

When it is fine
bf16.

Example
```yaml hf_trainer bad
# file: train.yaml
model_name_or_path: ./model
torch_dtype: float32
use_peft: false
fp16: true
learning_rate: 2.0e-5
output_dir: out
# file: config.json
{"model_type": "blip-2", "architectures": ["Blip2ForConditionalGeneration"], "hidden_size": 2048, "vocab_size": 32000}
```

Instead
```yaml hf_trainer good
# file: train.yaml
model_name_or_path: ./model
torch_dtype: float32
use_peft: false
bf16: true
learning_rate: 2.0e-5
output_dir: out
# file: config.json
{"model_type": "blip-2", "architectures": ["Blip2ForConditionalGeneration"], "hidden_size": 2048, "vocab_size": 32000}
```

How to confirm
`mpdoctor replay CHECKPOINT` prints which dtype each module ran in.

References
transformers `_keep_in_fp32_modules`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.bf16_switch import to_bf16
from mpdoctor.check.remedy import remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule

_FAMILIES = ("blip-2", "blip_2", "instructblip", "instructblipvideo", "kosmos-2.5", "kosmos2_5", "rwkv")


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.model_family.value in _FAMILIES and run.computes_in == "fp16" and config.param_dtype.value == "fp32":
        yield Hit(
            message=f"{config.model_family.value} keeps modules in fp32 only when it is loaded in fp16; under autocast they run in fp16",
            setting=config.compute_dtype,
            remedy=remedy("Train in bf16.", *to_bf16(run)),
        )


RULE = Rule(code="CFG507", severity=Severity.WARNING, cause="fp16-range", needs=("model_family", "compute_dtype", "param_dtype"), check=_check)
