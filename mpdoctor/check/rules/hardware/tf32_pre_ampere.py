"""TF32 asked for on a GPU that has none.

What it looks for
`tf32: true` on an NVIDIA GPU below compute capability 8.0.

Why training breaks
There is no such unit before Ampere. The HF Trainer raises at start-up; other frameworks ignore the switch.

When it is fine
A config shared by several machines, if the framework ignores the switch.

Example
```yaml hf_trainer bad gpu=v100
fp16: true
tf32: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=v100
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
`mpdoctor gpu` lists what the card computes.

References
transformers `TrainingArguments.__post_init__`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import delete, remedy
from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    tf32, gpu = run.config.tf32, run.below(8)
    if not tf32.value or gpu is None:
        return
    raises = run.dialect in ("hf_trainer", "llamafactory", "axolotl", "ms_swift")
    yield Hit(
        message=f"{shown(tf32)}: {capability(gpu)} has no TF32" + ("; the Trainer refuses to start" if raises else ""),
        setting=tf32,
        severity=Severity.ERROR if raises else Severity.INFO,
        remedy=remedy("Take the switch out.", delete(tf32)),
    )


RULE = Rule(code="CFG106", severity=Severity.ERROR, cause="slow-precision", needs=("gpus",), check=_check)
