"""A loss that is computed in fp16, times a scale that fp16 cannot hold.

What it looks for
A fixed or initial loss scale of 65536 or more where loss or weights are fp16 throughout.

Why training breaks
2^16 itself is infinity in fp16. The scaled loss is infinite from the first step.

When it is fine
Losses computed in fp32, as autocast, DeepSpeed with HF models and most trainers do: not reported.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --fp16 --lr 1.0e-4 --fp16-lm-cross-entropy --loss-scale 65536 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --fp16 --lr 1.0e-4 --loss-scale 65536 --tensor-model-parallel-size 1
```

How to confirm
`mpdoctor replay CHECKPOINT`: the scaled loss is infinite while the loss is finite.

References
fp16's largest number is 65504.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    scale = config.static_scale if config.scaler.value == "static" else config.init_scale
    in_fp16 = config.logit_dtype.value == "fp16" or (config.precision_mode.value == "pure_lowp" and config.scaler.value == "static")
    if run.computes_in == "fp16" and in_fp16 and scale.value is not None and scale.value >= 65536 and scale.explicit:
        yield Hit(
            message=f"{shown(scale)}: the loss is computed in fp16, whose largest number is 65504, so the scaled loss is infinite",
            setting=scale,
            remedy=Remedy(text="Compute the loss in fp32, or lower the scale."),
        )


RULE = Rule(code="CFG212", severity=Severity.ERROR, cause="loss-scaling", needs=("compute_dtype",), check=_check)
