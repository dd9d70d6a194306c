"""Accelerate's mixed precision and DeepSpeed's enabled format contradict each other.

What it looks for
`mixed_precision: fp16` beside a DeepSpeed config with bf16 enabled, or the reverse.

Why training breaks
Accelerate raises: the DeepSpeed config must agree with `mixed_precision`.

When it is fine
Never.

Example
```yaml accelerate bad
# file: accelerate.yaml
distributed_type: DEEPSPEED
num_processes: 8
mixed_precision: fp16
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}}
```

Instead
```yaml accelerate good
# file: accelerate.yaml
distributed_type: DEEPSPEED
num_processes: 8
mixed_precision: bf16
# file: ds_config.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}}
```

How to confirm
Accelerate refuses to start.

References
accelerate `utils/dataclasses.py`, DeepSpeedPlugin.set_mixed_precision
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for launcher in run.of("accelerate"):
        mixed = launcher.config.setting("accelerate.mixed_precision")
        if not mixed.explicit or mixed.value not in SIXTEEN_BIT:
            continue
        for file in run.of("deepspeed"):
            switch = file.config.setting("bf16_requested" if mixed.value == "fp16" else "fp16_requested")
            # An `auto` that was filled in from elsewhere is not the DeepSpeed file's own word.
            if switch.explicit and switch.value and switch.at and switch.at.file == file.path:
                other = "bf16" if mixed.value == "fp16" else "fp16"
                yield Hit(
                    message=f"{shown(mixed)}, but {shown(switch)} in {file.path}: accelerate refuses to start",
                    setting=mixed,
                    related=(switch.at,),
                    remedy=Remedy(text=f"Write `mixed_precision: {other}`, or change the DeepSpeed config."),
                )


RULE = Rule(code="CFG806", severity=Severity.ERROR, check=_check)
