"""A mixture of experts that routes in 16 bits.

What it looks for
Megatron with experts and no `--moe-router-dtype`, or a 16-bit one.

Why training breaks
Scores of neighbouring experts differ by less than a 16-bit rounding step: the chosen experts flip from run to run, and the balance of their load is
noise.

When it is fine
Few experts.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --num-experts 64 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --num-experts 64 --moe-router-dtype fp32 --tensor-model-parallel-size 1
```

How to confirm
Compare the chosen experts of one batch with a router in fp32.

References
Megatron-LM `transformer_config.py`, moe_router_dtype
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    experts, router = run.config.setting("megatron.experts"), run.config.router_dtype
    if experts.value and experts.value > 1 and router.value not in ("fp32", "fp64") and run.computes_in in SIXTEEN_BIT:
        yield Hit(
            message=f"{shown(experts)}: the router runs in {run.computes_in}, where close scores flip",
            setting=experts,
            remedy=Remedy(text="Add `--moe-router-dtype fp32`."),
        )


RULE = Rule(code="CFG121", severity=Severity.INFO, cause="model-numerics", needs=("compute_dtype",), check=_check)
