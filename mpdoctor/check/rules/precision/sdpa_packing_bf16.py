"""Sample packing with sdpa attention in bf16.

What it looks for
Packed samples, attention by sdpa, bf16 compute, on a GPU other than Hopper (information where the GPU is unknown).

Why training breaks
Packing needs a block-diagonal mask. On most cards sdpa's path for it in bf16 gives a loss of 0.0.

When it is fine
On H100 and its kin; with flash or flex attention.

Example
```yaml axolotl bad gpu=a100
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: data.jsonl, type: alpaca}]
sample_packing: true
attn_implementation: sdpa
adapter: lora
bf16: true
micro_batch_size: 2
learning_rate: 2.0e-4
```

Instead
```yaml axolotl good gpu=a100
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: data.jsonl, type: alpaca}]
sample_packing: true
attn_implementation: flash_attention_2
adapter: lora
bf16: true
micro_batch_size: 2
learning_rate: 2.0e-4
```

How to confirm
The loss of the first steps is exactly 0.

References
Axolotl `check_sample_packing_w_sdpa_bf16`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if not config.packing.value or config.attention.value != "sdpa" or run.computes_in != "bf16":
        return
    hit = any(cc[0] != 9 for _, cc in run.nvidia())
    if hit or not run.gpus:
        yield Hit(
            message=f"{shown(config.packing)} with sdpa in bf16{'' if hit else ', except on H100,'} can give a loss of 0.0",
            setting=config.packing,
            severity=None if hit else Severity.INFO,
            remedy=Remedy(text="Use flash_attention_2 or flex_attention, or switch packing off."),
        )


RULE = Rule(code="CFG115", severity=Severity.WARNING, cause="kernel", needs=("compute_dtype",), check=_check)
