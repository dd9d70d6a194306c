"""fp8 for fine-tuning all weights.

What it looks for
fp8 with full fine-tuning.

Why training breaks
Reports of fine-tuning that does not converge in fp8 where bf16 does: at small learning rates the noise of fp8 products is as large as the signal.

When it is fine
Pretraining recipes; after a comparison with bf16.

Example
```yaml axolotl bad
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 8
fp8: true
torch_compile: true
learning_rate: 0.00002
```

Instead
```yaml axolotl good
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 8
bf16: true
learning_rate: 0.00002
```

How to confirm
A hundred steps of both.

References
NVIDIA/TransformerEngine#841
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    if run.config.fp8.value and run.config.method.value == "full_ft":
        yield Hit(
            message=f"{shown(run.config.fp8)} for full fine-tuning: reports of runs that converge in bf16 and not in fp8",
            setting=run.config.fp8,
            confidence=Confidence.LOW,
            remedy=Remedy(text="Compare a short run in bf16."),
        )


RULE = Rule(code="CFG553", severity=Severity.INFO, cause="low-precision-state", needs=("method",), check=_check)
