"""LoRA weights in 16 bits under fp16 autocast.

What it looks for
Adapters kept in 16 bits (`lora_dtype`, `autocast_adapter_dtype: false`) in an fp16 run.

Why training breaks
The scaler refuses fp16 gradients ("Attempting to unscale FP16 gradients"), and small updates of the adapter are lost.

When it is fine
bf16 runs, at the price of lost updates.

Example
```yaml ms_swift bad
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: float16
tuner_type: lora
lora_dtype: float16
dataset: [data.jsonl]
max_length: 2048
```

Instead
```yaml ms_swift good
model: Qwen/Qwen2.5-7B-Instruct
torch_dtype: float16
tuner_type: lora
lora_dtype: float32
dataset: [data.jsonl]
max_length: 2048
```

How to confirm
The first optimizer step raises.

References
PEFT documentation, autocast_adapter_dtype; modelscope/ms-swift#4352
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if run.computes_in != "fp16" or not run.trains_adapters:
        return
    if config.adapter_dtype.value in SIXTEEN_BIT and config.adapter_dtype.explicit and not run.of("checkpoint_facts"):
        blamed: Setting[Any] = config.adapter_dtype
    elif config.adapter_autocast.value is False:
        blamed = config.adapter_autocast
    else:
        return
    yield Hit(
        message=f"{shown(blamed)}: 16-bit adapters under fp16 autocast; the scaler refuses their gradients",
        setting=blamed,
        remedy=Remedy(text="Keep the adapters in fp32."),
    )


RULE = Rule(code="CFG528", severity=Severity.ERROR, cause="training-loop", needs=("method", "compute_dtype"), check=_check)
