"""A vocabulary or width that does not fill tensor-core tiles.

What it looks for
A vocabulary or hidden size that is no multiple of 8, in a 16-bit run.

Why training breaks
It does not; the matrix products of those layers run without tensor cores or on padded tiles, several times slower.

When it is fine
Small models.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2050 --num-attention-heads 10 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

How to confirm
Time the layer with the size padded to a multiple of 64.

References
DeepSpeed's warning (TENSOR_CORE_ALIGN_SIZE)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for setting in (run.config.vocab_size, run.config.hidden_size):
        if setting.value is not None and setting.value > 1000 and setting.value % 8 and run.computes_in in SIXTEEN_BIT:
            yield Hit(
                message=f"{shown(setting)}: no multiple of 8, so tensor cores are not used well",
                setting=setting,
                remedy=Remedy(text=f"Pad it to {-(-setting.value // 64) * 64}."),
            )


RULE = Rule(code="CFG851", severity=Severity.INFO, cause="slow-precision", needs=("compute_dtype",), check=_check)
