"""Adam's beta2 of 0.999 for pretraining a large language model.

What it looks for
Pretraining a model of a billion parameters or more with beta2 of 0.999 or above.

Why training breaks
The second moment averages over 1000 steps. When gradients grow, it lags: steps are too large for hundreds of steps, and the loss spikes.

When it is fine
Small models and fine-tuning.

Example
```sh megatron bad
torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --lr-warmup-iters 2000 --adam-beta2 0.999 --tensor-model-parallel-size 1
```

Instead
```sh megatron good
torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --micro-batch-size 4 \
  --bf16 --lr 1.0e-4 --lr-warmup-iters 2000 --adam-beta2 0.95 --tensor-model-parallel-size 1
```

How to confirm
Spikes of the loss that follow growth of the gradient norm.

References
Recipes of Megatron-LM, llm-foundry, nanotron, torchtitan and OLMo all use 0.95
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    beta2, size = config.beta2, config.n_params.value
    if config.method.value == "pretrain" and run.adam and size is not None and size >= 1e9 and beta2.value is not None and beta2.value >= 0.999:
        yield Hit(
            message=f"{shown(beta2)}: the second moment lags by 1000 steps; recipes for large language models use 0.95",
            setting=beta2,
            remedy=Remedy(text="Use 0.95."),
        )


RULE = Rule(
    code="CFG314", severity=Severity.INFO, confidence=Confidence.MEDIUM, cause="learning-rate", needs=("beta2", "method", "n_params"), check=_check
)
