"""DeepSpeed's config and TrainingArguments say different things.

What it looks for
Batch size, accumulation, clipping, optimizer and precision in the DeepSpeed config that differ from the trainer's, its defaults included.

Why training breaks
The HF Trainer compares them and raises "Please correct the following DeepSpeed config values that mismatch TrainingArguments values".

When it is fine
Never with the HF Trainer; `"auto"` takes the trainer's value.

Example
```yaml hf_trainer bad
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
bf16: true
per_device_train_batch_size: 4
# file: ds_config.json
{
  "train_micro_batch_size_per_gpu": 8,
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true}
}
```

Instead
```yaml hf_trainer good
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
bf16: true
per_device_train_batch_size: 4
# file: ds_config.json
{
  "train_micro_batch_size_per_gpu": "auto",
  "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true}
}
```

How to confirm
The Trainer refuses to start and lists the values.

References
transformers `integrations/deepspeed.py`, `HfTrainerDeepSpeedConfig.trainer_config_process`
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_COMPARED = (
    ("train_micro_batch_size_per_gpu", "micro_batch"), ("gradient_accumulation_steps", "accumulation_steps"), ("gradient_clipping", "clip_norm"),
    ("optimizer.params.lr", "lr"), ("optimizer.params.eps", "eps"), ("optimizer.params.weight_decay", "weight_decay"),
    ("scheduler.params.warmup_max_lr", "lr"), ("fp16.enabled", "fp16_requested"), ("bf16.enabled", "bf16_requested"),
)  # fmt: skip


def _check(run: CheckSubject) -> Iterator[Hit]:
    trainer = next((file for file in run.of("hf_trainer", "llamafactory", "ms_swift", "axolotl") if file.role == "trainer"), None)
    if trainer is None:
        return
    for file in run.of("deepspeed"):
        for key, field in _COMPARED:
            node, other = file.node(key), trainer.config.setting(field)
            if node is None or not isinstance(node.value, (int, float)) or other.value is None or _same(node.value, other.value):
                continue
            setting = Setting(node.value, Origin.EXPLICIT, node.span(key), node.raw)
            yield Hit(
                message=f"{shown(setting)} in the DeepSpeed config, but {shown(other)} in {trainer.path}: the Trainer refuses to start",
                setting=setting,
                related=(other.at,) if other.at else (),
                remedy=remedy('Write "auto" in the DeepSpeed config.', change(setting, '"auto"')),
            )


def _same(one: float, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return bool(one) == bool(other)
    return isinstance(other, (int, float)) and math.isclose(one, other, rel_tol=1e-9)


RULE = Rule(code="CFG803", severity=Severity.ERROR, check=_check)
