"""Layer sizes that fp8 kernels do not take.

What it looks for
fp8 with a hidden size or vocabulary that is no multiple of 16.

Why training breaks
torchtitan skips such layers, Transformer Engine raises.

When it is fine
Layers that are filtered out on purpose.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2050 --num-attention-heads 10 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --fp8-format hybrid --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --fp8-format hybrid --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

How to confirm
The log of converted layers.

References
torchtitan's float8 converter (16), Lightning's Transformer Engine plugin (8 and 16)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for setting in (run.config.hidden_size, run.config.vocab_size):
        if run.config.fp8.value and setting.value is not None and setting.value % 16:
            yield Hit(
                message=f"{shown(setting)}: no multiple of 16, so fp8 leaves the layer out or raises",
                setting=setting,
                remedy=Remedy(text="Pad it to a multiple of 16."),
            )


RULE = Rule(code="CFG545", severity=Severity.INFO, cause="slow-precision", check=_check)
