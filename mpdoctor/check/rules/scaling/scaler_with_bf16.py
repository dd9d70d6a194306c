"""Loss scaling is configured, and the run is not in fp16.

What it looks for
A loss scale set explicitly while the run computes in bf16 or fp32.

Why training breaks
It is ignored at best. It shows that somebody believes fp16 to be on. Lightning refuses a scaler with bf16.

When it is fine
Templates that carry the block for both precisions.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --loss-scale 4096 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --tensor-model-parallel-size 1
```

How to confirm
The log shows no loss scale, or one that never changes.

References
Lightning `plugins/precision/amp.py`; DeepSpeed CreateLossScaler
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    knob = run.config.setting("scaling.unused")
    if knob.explicit and run.computes_in in ("bf16", "fp32"):
        yield Hit(
            message=f"{shown(knob)}: loss scaling is for fp16, and this run computes in {run.computes_in}",
            setting=knob,
            severity=Severity.ERROR if run.dialect == "lightning" else None,
            remedy=Remedy(text="Take it out, or switch fp16 on if that was meant."),
        )


RULE = Rule(code="CFG209", severity=Severity.INFO, cause="loss-scaling", needs=("compute_dtype",), check=_check)
