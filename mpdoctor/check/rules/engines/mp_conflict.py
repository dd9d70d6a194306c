"""Accelerate's mixed precision and TrainingArguments disagree.

What it looks for
`mixed_precision` in the accelerate config beside a different `fp16` or `bf16` in the trainer's file.

Why training breaks
TrainingArguments win without a message, so the run is not in the precision that its launch config names.

When it is fine
When the launch config is shared and the trainer's file is meant to decide.

Example
```yaml hf_trainer bad
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
fp16: true
# file: accelerate.yaml
distributed_type: MULTI_GPU
num_processes: 4
mixed_precision: bf16
```

Instead
```yaml hf_trainer good
# file: train.yaml
learning_rate: 2.0e-5
output_dir: out
bf16: true
# file: accelerate.yaml
distributed_type: MULTI_GPU
num_processes: 4
mixed_precision: bf16
```

How to confirm
`mpdoctor replay CHECKPOINT` prints which precision really ran.

References
transformers `TrainingArguments.__post_init__` (ACCELERATE_MIXED_PRECISION)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, ConfigFile, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("accelerate"):
        mixed = file.config.setting("accelerate.mixed_precision")
        for trainer in run.files:
            switch = _switch(trainer)
            if trainer.role != "trainer" or switch is None or not mixed.explicit or switch.value == mixed.value:
                continue
            yield Hit(
                message=f"{shown(mixed)} here, but {shown(switch)} in {trainer.path}, which wins: the run is in {switch.value}",
                setting=mixed,
                related=(switch.at,) if switch.at else (),
                remedy=Remedy(text=f"Write `mixed_precision: {switch.value}`, or change the trainer's switch."),
            )


def _switch(file: ConfigFile) -> Setting[str] | None:
    """What the trainer's file asks for with a switch that is on."""
    for name in ("fp16", "bf16"):
        setting = file.config.setting(f"{name}_requested")
        if setting.explicit and setting.value:
            return setting.becomes(name)
    return None


RULE = Rule(code="CFG805", severity=Severity.WARNING, cause="slow-precision", check=_check)
