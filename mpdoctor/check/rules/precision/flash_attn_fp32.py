"""Flash attention with fp32 compute.

What it looks for
Flash attention 2 or 3 in a run that computes in fp32.

Why training breaks
The kernels take fp16 and bf16 only. Transformers warns and casts the inputs, so attention silently runs in 16 bits; other stacks stop with a
dtype error.

When it is fine
Where the model itself is loaded in 16 bits.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
bf16: false
fp16: false
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
The framework's warning at the first step.

References
transformers `modeling_utils.py`, checks of flash attention's dtype
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    attention = run.config.attention
    if attention.value in ("flash2", "flash3") and run.computes_in == "fp32" and run.config.param_dtype.value not in SIXTEEN_BIT:
        yield Hit(
            message=f"{shown(attention)}: its kernels take fp16 or bf16 only, and this run computes in fp32",
            setting=attention,
            remedy=Remedy(text="Switch mixed precision on, or use sdpa."),
        )


RULE = Rule(code="CFG113", severity=Severity.WARNING, cause="slow-precision", needs=("compute_dtype",), check=_check)
