"""The first and last layers in fp8.

What it looks for
Tensorwise fp8 scaling without `--first-last-layers-bf16`.

Why training breaks
The layers next to the embeddings and to the head are the most sensitive to 3 bits of significand.

When it is fine
With delayed or block scaling; small differences.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --fp8-format hybrid --fp8-recipe tensorwise --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --fp8-format hybrid --fp8-recipe tensorwise --first-last-layers-bf16 --lr 1.0e-4 --lr-warmup-iters 100 --tensor-model-parallel-size 1
```

How to confirm
Compare the loss of a hundred steps.

References
NeMo's recipe for current scaling
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    recipe, edges = run.config.fp8_recipe, run.config.fp8_edges_bf16
    if run.config.fp8.value and recipe.value == "tensorwise" and edges.value is False:
        yield Hit(
            message=f"{shown(recipe)}: the first and last layers run in fp8 too",
            setting=recipe,
            remedy=Remedy(text="Add `--first-last-layers-bf16`."),
        )


RULE = Rule(code="CFG547", severity=Severity.INFO, cause="model-numerics", check=_check)
