"""Attention itself in fp8.

What it looks for
fp8 dot-product or multi-head attention switched on.

Why training breaks
Scores enter the softmax with 3 bits of significand: neighbours that differ by 5 % become equal.

When it is fine
Inference; measured pretraining recipes.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --fp8-format hybrid --fp8-dot-product-attention --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --fp8-format hybrid --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

How to confirm
Compare the loss of a hundred steps.

References
Megatron-LM's fp8 attention flags
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    attention = run.config.fp8_attention
    if attention.value:
        yield Hit(
            message=f"{shown(attention)}: the softmax sees scores with 3 bits of significand",
            setting=attention,
            remedy=remedy("Keep attention in bf16.", delete(attention)),
        )


RULE = Rule(code="CFG548", severity=Severity.WARNING, cause="model-numerics", check=_check)
