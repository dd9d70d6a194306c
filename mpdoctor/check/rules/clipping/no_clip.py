"""No gradient clipping.

What it looks for
Clipping that is off: a warning for fp16 language models and for pretraining, information elsewhere; nothing for vision.

Why training breaks
One bad batch makes a gradient a hundred times as long. Unclipped, Adam's second moment remembers it for a thousand steps; in fp16 the next forward
pass overflows.

When it is fine
torchtune and fairseq ship most recipes without clipping; full bf16 fine-tuning at small rates rarely needs it.

Example
```yaml hf_trainer bad
model_name_or_path: facebook/opt-1.3b
use_peft: false
torch_dtype: float32
fp16: true
max_grad_norm: 0
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: facebook/opt-1.3b
use_peft: false
torch_dtype: float32
fp16: true
max_grad_norm: 1.0
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
Peaks of the gradient norm before the loss breaks.

References
Shipped recipes: 150 of 162 torchtune and 51 of 87 fairseq configs do not clip
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.clip_kind.value != "none" or config.domain.value == "vision":
        return
    usual_there = run.dialect in ("torchtune", "fairseq")
    serious = (run.computes_in == "fp16" and run.language) or config.method.value == "pretrain"
    blamed = config.clip_norm if config.clip_norm.known else config.clip_kind
    yield Hit(
        message="gradients are not clipped: one bad batch can throw the run off"
        + (", and fp16 overflows on it" if run.computes_in == "fp16" else ""),
        setting=blamed,
        severity=Severity.WARNING if serious and not usual_there else Severity.INFO,
        remedy=Remedy(text="Clip the gradient norm at 1.0."),
    )


RULE = Rule(code="CFG401", severity=Severity.WARNING, confidence=Confidence.MEDIUM, cause="learning-rate", needs=("clip_kind",), check=_check)
