"""Eager attention over long sequences.

What it looks for
`attn_implementation: eager` with sequences of 4096 tokens or more.

Why training breaks
It does not; the whole score matrix is stored, which grows with the square of the length, and in fp16 its values are rounded on the way.

When it is fine
Models that need eager attention (some with soft-capping), and debugging.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
attn_implementation: eager
max_length: 8192
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: true
attn_implementation: sdpa
max_length: 8192
bf16: true
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
Peak memory of one step.

References
Follows from the size of the score matrix.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    attention, length = run.config.attention, run.config.sequence_length
    if attention.value == "eager" and length.value is not None and length.value >= run.thresholds.long_sequence:
        yield Hit(
            message=f"{shown(attention)} over {length.value} tokens stores the whole score matrix",
            setting=attention,
            remedy=Remedy(text="Use sdpa or flash attention."),
        )


RULE = Rule(code="CFG853", severity=Severity.INFO, cause="slow-precision", check=_check)
