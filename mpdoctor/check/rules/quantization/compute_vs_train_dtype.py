"""4-bit layers compute in another 16-bit format than the rest.

What it looks for
A bitsandbytes compute dtype that differs from the format of autocast, both 16-bit.

Why training breaks
Every quantised layer casts its input and output: twice the rounding, and the range of the narrower of the two.

When it is fine
Never on purpose.

Example
```yaml ms_swift bad
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: bfloat16
tuner_type: lora
dataset: [data.jsonl]
quant_method: bnb
quant_bits: 4
bnb_4bit_compute_dtype: float16
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
`mpdoctor replay CHECKPOINT` prints the dtype that each module ran in.

References
Follows from bitsandbytes' Linear4bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    quant, compute = run.config.quant_compute_dtype, run.config.compute_dtype
    if quant.value in SIXTEEN_BIT and compute.value in SIXTEEN_BIT and quant.value != compute.value:
        yield Hit(
            message=f"{shown(quant)}: quantised layers compute in {quant.value}, all else in {compute.value}",
            setting=quant,
            related=(compute.at,) if compute.at else (),
            remedy=Remedy(text=f"Use {compute.value} for both."),
        )


RULE = Rule(code="CFG526", severity=Severity.WARNING, cause="slow-precision", needs=("compute_dtype",), check=_check)
