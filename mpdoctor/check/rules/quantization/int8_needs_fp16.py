"""8-bit layers fed with bf16.

What it looks for
bitsandbytes 8-bit in a bf16 run.

Why training breaks
LLM.int8 multiplies in fp16; each layer casts bf16 to fp16 and back, and large activations overflow on the way. Lightning refuses.

When it is fine
Models whose activations fit fp16; 4-bit nf4 has no such step.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
dtype: bfloat16
load_in_8bit: true
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
bitsandbytes warns that inputs are cast to float16.

References
Lightning's bitsandbytes plugin
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    quantization = run.config.quantization
    if quantization.value == "bnb8" and run.computes_in == "bf16":
        yield Hit(
            message=f"{shown(quantization)} in a bf16 run: 8-bit layers compute in fp16 and cast both ways",
            setting=quantization,
            severity=Severity.ERROR if run.dialect == "lightning" else None,
            remedy=Remedy(text="Use 4-bit nf4, or fp16."),
        )


RULE = Rule(code="CFG530", severity=Severity.INFO, cause="slow-precision", needs=("compute_dtype",), check=_check)
