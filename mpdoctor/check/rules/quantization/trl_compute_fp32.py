"""TRL's 4-bit loading without a dtype.

What it looks for
`load_in_4bit` in a TRL config without `dtype` (or `torch_dtype`).

Why training breaks
TRL passes `dtype` on as the compute dtype, and its default is float32: 4-bit layers multiply in fp32, against what `bf16: true` seems to say.

When it is fine
Never on purpose.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
load_in_4bit: true
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_4bit: true
use_peft: true
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` prints which dtype the matrix products ran in.

References
trl `trainer/utils.py`, get_quantization_config
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.setting("hf.trl").value and config.quantization.value == "bnb4" and config.param_dtype.origin is Origin.DEFAULT:
        yield Hit(
            message=f"{shown(config.quantization)} without `dtype`: TRL lets the 4-bit layers multiply in fp32",
            setting=config.quantization,
            remedy=Remedy(text="Add `dtype: bfloat16` (float16 before Ampere)."),
        )


RULE = Rule(code="CFG522", severity=Severity.WARNING, cause="slow-precision", needs=("param_dtype",), check=_check)
