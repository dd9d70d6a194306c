"""An optimizer for 16-bit weights with its compensation off.

What it looks for
`adamw_anyprecision` without `use_kahan_summation=True`.

Why training breaks
The optimizer exists to train 16-bit weights without losing small updates; without Kahan summation it loses them like any other.

When it is fine
fp32 weights.

Example
```yaml hf_trainer bad
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: false
torch_dtype: bfloat16
bf16: true
optim: adamw_anyprecision
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good
model_name_or_path: meta-llama/Llama-3.1-8B
use_peft: false
torch_dtype: bfloat16
bf16: true
optim: adamw_anyprecision
optim_args: use_kahan_summation=True
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of lost updates.

References
transformers `optim_args` of adamw_anyprecision; pytorch/ao#1124
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    if "anyprecision" in str(config.optimizer.value) and not config.compensated.value and config.param_dtype.value in SIXTEEN_BIT:
        yield Hit(
            message=f"{shown(config.optimizer)} without Kahan summation loses small updates of {config.param_dtype.value} weights",
            setting=config.optimizer,
            remedy=Remedy(text="Set `optim_args: use_kahan_summation=True`."),
        )


RULE = Rule(code="CFG325", severity=Severity.INFO, cause="low-precision-state", needs=("param_dtype",), check=_check)
