"""4-bit weights in fp4 because nobody chose.

What it looks for
bitsandbytes 4-bit with the quantisation type left at fp4.

Why training breaks
nf4 is made for normally distributed weights and loses less; fp4 is only the older default of BitsAndBytesConfig.

When it is fine
Reproducing an older run.

Example
```python bitsandbytes bad
from transformers import BitsAndBytesConfig
config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype="bfloat16")
```

Instead
```python bitsandbytes good
from transformers import BitsAndBytesConfig
config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype="bfloat16", bnb_4bit_quant_type="nf4")
```

How to confirm
The loss of the untrained model with both types.

References
transformers `utils/quantization_config.py`; TRL, Axolotl and LLaMA-Factory default to nf4
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    kind = run.config.quant_type
    if run.config.quantization.value == "bnb4" and kind.value == "fp4":
        yield Hit(
            message="4-bit weights in fp4; nf4 loses less",
            setting=kind if kind.explicit else run.config.quantization,
            identity="fp4",
            remedy=remedy('Set `bnb_4bit_quant_type: "nf4"`.', *([change(kind, "nf4")] if kind.raw == "fp4" else [])),
        )


RULE = Rule(code="CFG524", severity=Severity.INFO, cause="low-precision-state", check=_check)
