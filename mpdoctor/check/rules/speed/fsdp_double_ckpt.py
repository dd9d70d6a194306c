"""The trainer's activation checkpointing under FSDP.

What it looks for
`gradient_checkpointing: true` in a TrainingArguments file whose run is sharded by FSDP.

Why training breaks
It does not; parameters are gathered once more in the backward pass.

When it is fine
Where FSDP's own checkpointing is not available.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
gradient_checkpointing: true
fsdp: full_shard
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
gradient_checkpointing: false
fsdp: full_shard
fsdp_config: {activation_checkpointing: true}
```

How to confirm
Time ten steps of both.

References
huggingface/transformers#30404
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("hf_trainer"):
        setting = file.config.activation_checkpointing
        if setting.value and setting.explicit and str(run.config.distributed.value).startswith("fsdp"):
            yield Hit(
                message=f"{shown(setting)} under FSDP gathers the parameters once more in backward",
                setting=setting,
                remedy=Remedy(text="Use `fsdp_config.activation_checkpointing` instead."),
            )


RULE = Rule(code="CFG852", severity=Severity.INFO, cause="slow-precision", check=_check)
