"""torchao's float8 without torch.compile.

What it looks for
fp8 through torchao in eager mode.

Why training breaks
Scaling and casting are separate kernels then: slower than bf16.

When it is fine
Checks of accuracy.

Example
```yaml axolotl bad
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 8
fp8: true
learning_rate: 0.00002
```

Instead
```yaml axolotl good
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: data.jsonl, type: alpaca}]
sequence_len: 2048
micro_batch_size: 8
fp8: true
torch_compile: true
learning_rate: 0.00002
```

How to confirm
Time ten steps with and without.

References
Axolotl's validation; pytorch/ao#1297
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if config.fp8.value and config.fp8_backend.value == "ao" and config.compile.value is False:
        yield Hit(
            message=f"{shown(config.fp8)} by torchao without torch.compile is slower than bf16",
            setting=config.fp8,
            remedy=Remedy(text="Switch torch.compile on."),
        )


RULE = Rule(code="CFG549", severity=Severity.INFO, cause="slow-precision", check=_check)
