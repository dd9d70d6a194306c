"""`auto` in a DeepSpeed config that nobody fills in.

What it looks for
Values of `"auto"` in a DeepSpeed config beside a trainer that is not the HF Trainer (error), or with no trainer's file given (information).

Why training breaks
`auto` is a placeholder of the HF Trainer and of Accelerate. DeepSpeed itself gets the text "auto" where it wants a number or a switch.

When it is fine
Whenever the HF Trainer or Accelerate loads the file, which is what such templates are for.

Example
```json deepspeed bad
{
  "train_micro_batch_size_per_gpu": "auto",
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true}
}
```

Instead
```json deepspeed good
{
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true}
}
```

How to confirm
DeepSpeed stops at start-up with a type error that names the field.

References
transformers `integrations/deepspeed.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting

_FILLS_IN = ("hf_trainer", "accelerate", "axolotl", "llamafactory", "llamafactory_v1", "ms_swift", "unsloth_studio", "hf_training_args")


def _check(run: CheckSubject) -> Iterator[Hit]:
    others = [file.dialect for file in run.files if file.dialect != "deepspeed" and file.role in ("trainer", "launcher")]
    if any(dialect in _FILLS_IN for dialect in others):
        return
    for file in run.of("deepspeed"):
        places = [(key, node) for key, node in file.document.root.walk() if node.value == "auto"]
        if not places:
            continue
        key, node = places[0]
        count = f" ({len(places)} such values)" if len(places) > 1 else ""
        yield Hit(
            message=f"`{key}: auto`{count} is filled in by the HF Trainer and Accelerate only"
            + (f"; {others[0]} hands it to DeepSpeed as text" if others else "; name the trainer's config too to have these values judged"),
            setting=Setting("auto", Origin.EXPLICIT, node.span(key), node.raw),
            severity=None if others else Severity.INFO,
            remedy=Remedy(text="Write numbers, unless the HF Trainer or Accelerate loads this file."),
        )


RULE = Rule(code="CFG802", severity=Severity.ERROR, check=_check)
