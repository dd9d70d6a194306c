"""Adam without warm-up.

What it looks for
No warm-up steps with an Adam-like optimizer: a warning for pretraining and for fp16, information for full fine-tuning, nothing for LoRA.

Why training breaks
For the first 1/(1-beta2) steps Adam's second moment is an average over few gradients: single weights take steps far from their usual size, and
activations of an fp16 run overflow on them.

When it is fine
Short fine-tuning at a small learning rate; resumed runs.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --lr-warmup-iters 0 --train-iters 100000 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --lr-warmup-iters 2000 --train-iters 100000 --tensor-model-parallel-size 1
```

How to confirm
`mpdoctor replay CHECKPOINT --steps 20` from the start: growth over the first steps, gone with a tenth of the learning rate.

References
Defaults of fairseq, torchtitan and Megatron recipes; the comment in llm-foundry's mpt-7b recipe
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    steps = config.warmup_steps
    if (
        not run.adam
        or steps.value != 0
        or config.warmup_ratio.value
        or run.trains_adapters
        or (config.warmup_ratio.at and not config.warmup_ratio.known)
    ):
        return
    if config.resume.known and str(config.resume.value).lower() not in ("false", "none", ""):
        return  # the moments come with the checkpoint
    if config.method.value == "pretrain" or run.computes_in == "fp16":
        severity = Severity.WARNING
    elif config.method.value in ("full_ft", "prefer_full"):
        severity = Severity.INFO
    else:
        return
    yield Hit(
        message=f"{shown(steps)}: Adam's first steps rest on few gradients and are large",
        setting=steps,
        severity=severity,
        remedy=Remedy(text="Warm up over 1 to 3 % of the steps, at least 100."),
    )


RULE = Rule(
    code="CFG311",
    severity=Severity.WARNING,
    confidence=Confidence.MEDIUM,
    cause="learning-rate",
    needs=("warmup", "optimizer_family"),
    check=_check,
)
