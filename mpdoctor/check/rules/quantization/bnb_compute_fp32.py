"""4-bit weights multiplied in fp32.

What it looks for
bitsandbytes 4-bit with a compute dtype of float32, written or left at BitsAndBytesConfig's default.

Why training breaks
It does not, but the default reaches the layer as an explicit choice: it multiplies in fp32 whatever comes in, slowly, and its own warning about slow
inputs cannot fire.

When it is fine
Checks against fp32.

Example
```yaml ms_swift bad
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: bfloat16
tuner_type: lora
dataset: [data.jsonl]
quant_method: bnb
quant_bits: 4
bnb_4bit_compute_dtype: float32
```

Instead
```yaml ms_swift good
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: bfloat16
tuner_type: lora
dataset: [data.jsonl]
quant_method: bnb
quant_bits: 4
bnb_4bit_compute_dtype: bfloat16
```

How to confirm
Time ten steps with `bnb_4bit_compute_dtype: bfloat16`.

References
bitsandbytes `nn/modules.py`, compute_type_is_set; transformers `integrations/bitsandbytes.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Edit, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    compute = config.quant_compute_dtype
    if config.quantization.value != "bnb4" or compute.value != "fp32" or (config.setting("hf.trl").value and not compute.explicit):
        return
    yield Hit(
        message=f"{shown(compute) if compute.explicit else 'no compute dtype'}: the 4-bit layers multiply in fp32, slowly",
        setting=compute if compute.explicit else config.quantization,
        identity="fp32",
        remedy=remedy("Set `bnb_4bit_compute_dtype: bfloat16` (float16 before Ampere).", *_edit(compute)),
    )


def _edit(compute: Setting[str]) -> list[Edit | None]:
    return [change(compute, "bfloat16")] if compute.raw == "float32" and compute.at and str(compute.at.key).endswith("compute_dtype") else []


RULE = Rule(code="CFG521", severity=Severity.WARNING, cause="slow-precision", check=_check)
