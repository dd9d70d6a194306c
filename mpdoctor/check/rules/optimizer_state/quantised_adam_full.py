"""8-bit or 4-bit Adam for full fine-tuning at a high learning rate.

What it looks for
Adam with quantised state, all weights trained, and a learning rate above 1e-4.

Why training breaks
The second moment is stored in 256 (or 16) levels per block. Rows of an embedding with outliers take steps that are off by a factor; at high learning
rates that is enough to diverge.

When it is fine
At 1e-5 to 5e-5, which is what the optimizer was measured with; for adapters.

Example
```yaml axolotl bad
base_model: NousResearch/Llama-2-7b-hf
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 4096
micro_batch_size: 1
optimizer: adamw_bnb_8bit
learning_rate: 0.0002
bf16: auto
```

Instead
```yaml axolotl good
base_model: NousResearch/Llama-2-7b-hf
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 4096
micro_batch_size: 1
optimizer: adamw_bnb_8bit
learning_rate: 0.00002
bf16: auto
```

How to confirm
The same steps with 32-bit state.

References
bitsandbytes keeps small tensors in 32 bits for this reason (`min_8bit_size`)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config, lr = run.config, run.config.lr.value
    quantised = config.optimizer_family.value in ("adam8bit", "adam4bit")
    if quantised and config.method.value == "full_ft" and run.language and lr is not None and lr > run.thresholds.lr_full_quantised:
        yield Hit(
            message=f"{shown(config.optimizer)} at a learning rate of {lr:g}: quantised moments are unstable that high",
            setting=config.optimizer,
            remedy=Remedy(text="Lower the learning rate, or keep the embeddings' state in 32 bits."),
        )


RULE = Rule(code="CFG318", severity=Severity.WARNING, cause="low-precision-state", needs=("optimizer_family", "method", "lr"), check=_check)
