"""Flash attention on a GPU that has no kernel for it.

What it looks for
Flash attention 2 below compute capability 8.0, flash attention 3 on anything but 9.0 (Hopper).

Why training breaks
The kernel is not there: an error at the first forward pass, after the model was loaded.

When it is fine
Builds of the library for other cards (flash-attention 1 for Turing, ROCm's port).

Example
```yaml hf_trainer bad gpu=t4
model_name_or_path: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=t4
model_name_or_path: meta-llama/Llama-3.1-8B
attn_implementation: sdpa
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
One forward pass.

References
The README of the flash-attention project lists the supported GPUs
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    attention = run.config.attention
    gpu = None
    if attention.value == "flash2":
        gpu = run.below(8)
    elif attention.value == "flash3":
        gpu = next((card for card, cc in run.nvidia() if cc[0] != 9), None)
    if gpu is not None:
        yield Hit(
            message=f"{shown(attention)}: no kernel for {capability(gpu)}",
            setting=attention,
            remedy=Remedy(text="Use sdpa (or xformers) on this card."),
        )


RULE = Rule(code="CFG114", severity=Severity.ERROR, cause="kernel", needs=("gpus",), check=_check)
