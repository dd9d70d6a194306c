"""Attention's softmax in fp16.

What it looks for
fp16 compute with the switch that keeps the attention softmax in fp32 turned off.

Why training breaks
Products of queries and keys can pass 65504 in long or deep models, and a sum over thousands of keys loses its tail at 11 significant bits.

When it is fine
Fused kernels that keep fp32 inside whatever the switch says.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --fp16 --lr 1.0e-4 --attention-softmax-in-fp32 false --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --fp16 --lr 1.0e-4 --attention-softmax-in-fp32 --tensor-model-parallel-size 1
```

How to confirm
`mpdoctor replay CHECKPOINT` names the first op that overflows.

References
Megatron-LM's help text; stas00/ml-engineering, training/instabilities
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    softmax = run.config.softmax_fp32
    if softmax.value is False and run.computes_in == "fp16":
        yield Hit(
            message=f"{shown(softmax)}: attention scores above 65504 become infinite in an fp16 softmax",
            setting=softmax,
            remedy=remedy("Keep the softmax in fp32.", change(softmax, "true")),
        )


RULE = Rule(code="CFG116", severity=Severity.WARNING, cause="fp16-range", needs=("compute_dtype",), check=_check)
