"""A learning rate that the framework multiplies.

What it looks for
`scale_lr`, `auto_scale_lr` or a reference world size: the written rate is multiplied by batch or world size.

Why training breaks
The effective rate may be many times the written one, and changes with the number of GPUs.

When it is fine
On purpose, when the batch grows with the GPUs.

Example
```yaml detectron2 bad
MODEL: {META_ARCHITECTURE: GeneralizedRCNN}
SOLVER: {BASE_LR: 0.02, REFERENCE_WORLD_SIZE: 8}
```

Instead
```yaml detectron2 good
MODEL: {META_ARCHITECTURE: GeneralizedRCNN}
SOLVER: {BASE_LR: 0.02}
```

How to confirm
The learning rate in the log.

References
diffusers' training scripts (`--scale_lr`), detectron2 `auto_scale_workers`, mmengine `auto_scale_lr`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scaled, lr = run.config.lr_scaled, run.config.lr
    if scaled.value and scaled.explicit:
        yield Hit(
            message=f"{shown(scaled)}: the learning rate ({lr.value:g} as written) is multiplied by batch or world size"
            if lr.value is not None
            else f"{shown(scaled)}: the learning rate is multiplied by batch or world size",
            setting=scaled,
            remedy=Remedy(text="Compute the effective rate for your number of GPUs."),
        )


RULE = Rule(code="CFG321", severity=Severity.INFO, confidence=Confidence.MEDIUM, cause="learning-rate", check=_check)
