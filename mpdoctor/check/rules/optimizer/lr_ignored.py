"""A learning rate that the optimizer does not use.

What it looks for
Ultralytics with `optimizer: auto` and `lr0` set.

Why training breaks
`auto` chooses optimizer and rate itself; tuning `lr0` changes nothing.

When it is fine
Saved `args.yaml` files hold all values, used or not.

Example
```yaml ultralytics bad
optimizer: auto
lr0: 0.003
lrf: 0.01
imgsz: 640
close_mosaic: 10
nbs: 64
```

Instead
```yaml ultralytics good
optimizer: AdamW
lr0: 0.003
lrf: 0.01
imgsz: 640
close_mosaic: 10
nbs: 64
```

How to confirm
The log's first lines name the chosen optimizer and rate.

References
ultralytics `engine/trainer.py`, build_optimizer
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    lr, automatic = run.config.setting("ultralytics.lr0"), run.config.setting("ultralytics.optimizer_auto")
    if automatic.value and lr.explicit:
        yield Hit(
            message=f"{shown(lr)} is ignored: `optimizer: auto` chooses its own learning rate",
            setting=lr,
            remedy=Remedy(text="Name the optimizer to have the learning rate used."),
        )


RULE = Rule(code="CFG320", severity=Severity.INFO, check=_check)
