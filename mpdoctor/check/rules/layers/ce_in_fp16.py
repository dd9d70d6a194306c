"""The loss over the vocabulary in fp16.

What it looks for
Logits or the language-model cross-entropy in fp16.

Why training breaks
log-sum-exp over 50,000 to 250,000 words adds numbers far below the largest, which 11 significant bits drop; logits above 65504 are infinite.

When it is fine
Small vocabularies, at the price of accuracy.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --fp16 --lr 1.0e-4 --fp16-lm-cross-entropy --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --fp16 --lr 1.0e-4 --tensor-model-parallel-size 1
```

How to confirm
Compare the loss of one batch with the logits cast to fp32.

References
Megatron-LM arguments `--fp16-lm-cross-entropy`, `--output-logit-dtype`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    logits = run.config.logit_dtype
    if logits.value == "fp16":
        yield Hit(
            message=f"{shown(logits)}: cross-entropy over the vocabulary in fp16 loses its tail and overflows above 65504",
            setting=logits,
            remedy=Remedy(text="Compute logits and loss in fp32."),
        )


RULE = Rule(code="CFG117", severity=Severity.WARNING, cause="fp16-range", check=_check)
