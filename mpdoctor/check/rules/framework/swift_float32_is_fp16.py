"""ms-swift's `torch_dtype: float32` selects fp16.

What it looks for
`torch_dtype: float32` with neither `fp16` nor `bf16` set.

Why training breaks
ms-swift derives the precision from torch_dtype, and both float16 and float32 mean fp16 autocast: a run that was meant in fp32 overflows in fp16.

When it is fine
When fp16 autocast over fp32 weights is meant.

Example
```yaml ms_swift bad
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: float32
tuner_type: lora
dataset: [data.jsonl]
max_length: 2048
```

Instead
```yaml ms_swift good
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: bfloat16
tuner_type: lora
dataset: [data.jsonl]
max_length: 2048
```

How to confirm
`mpdoctor replay CHECKPOINT` prints which precision really ran.

References
ms-swift `arguments/base_args/model_args.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    dtype = run.config.setting("ms_swift.torch_dtype")
    unset = not run.config.fp16_requested.known and not run.config.bf16_requested.known
    if run.dialect == "ms_swift" and dtype.value == "fp32" and unset:
        yield Hit(
            message=f"{shown(dtype)} selects fp16 autocast in ms-swift",
            setting=dtype,
            remedy=Remedy(text="Use bfloat16, or set `fp16: false` and `bf16: false`."),
        )


RULE = Rule(code="CFG816", severity=Severity.WARNING, cause="fp16-range", check=_check)
