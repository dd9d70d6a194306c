"""An accelerate config that names a DeepSpeed file and repeats its fields.

What it looks for
`deepspeed_config_file` together with fields that belong in that file, or with `mixed_precision`.

Why training breaks
Accelerate raises: with a DeepSpeed file, these fields must be set there and nowhere else.

When it is fine
Never.

Example
```yaml accelerate bad
distributed_type: DEEPSPEED
num_processes: 8
deepspeed_config:
  deepspeed_config_file: ds_config.json
  zero_stage: 3
```

Instead
```yaml accelerate good
distributed_type: DEEPSPEED
num_processes: 8
deepspeed_config:
  deepspeed_config_file: ds_config.json
  zero3_init_flag: true
```

How to confirm
`accelerate launch` stops with "When using `deepspeed_config_file`, the following accelerate config variables will be ignored".

References
accelerate `utils/launch.py` and `utils/dataclasses.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_FIELDS = (
    "gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device", "offload_param_device", "zero3_save_16bit_model",
)  # fmt: skip


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("accelerate"):
        named = file.node("deepspeed_config.deepspeed_config_file")
        if named is None or named.value is None:
            continue
        for key in (*(f"deepspeed_config.{field}" for field in _FIELDS), "mixed_precision"):
            node = file.node(key)
            if node is None or node.value is None or (key == "mixed_precision" and node.value in ("no", False)):
                continue
            setting = Setting(node.value, Origin.EXPLICIT, node.span(key), node.raw)
            yield Hit(
                message=f"{shown(setting)} beside `deepspeed_config_file: {named.raw}`: accelerate refuses fields that belong in that file",
                setting=setting,
                related=(named.span("deepspeed_config.deepspeed_config_file"),),
                remedy=remedy(f"Take it out here and set it in {named.raw}.", delete(setting)),
            )


RULE = Rule(code="CFG804", severity=Severity.ERROR, check=_check)
