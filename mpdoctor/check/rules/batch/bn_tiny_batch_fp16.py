"""Batch normalisation over one or two samples in fp16.

What it looks for
A vision model trained in fp16 with at most two samples per GPU and no synchronised normalisation.

Why training breaks
The variance of one or two samples is near zero where they agree; dividing by its root amplifies, and fp16 overflows.

When it is fine
Models without batch normalisation, or with it frozen (detectron2).

Example
```python mmengine bad
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(type='SGD', lr=0.01))
train_dataloader = dict(batch_size=1)
default_hooks = dict()
```

Instead
```python mmengine good
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(type='SGD', lr=0.01))
train_dataloader = dict(batch_size=8)
default_hooks = dict()
```

How to confirm
`mpdoctor replay CHECKPOINT` names the normalisation that overflows first.

References
Follows from the definition of batch normalisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    config = run.config
    batch = config.micro_batch
    if (
        config.domain.value != "vision"
        or run.computes_in != "fp16"
        or run.dialect == "detectron2"
        or config.setting("lightning.sync_batchnorm").value
    ):
        return
    if batch.value is not None and 0 < batch.value <= run.thresholds.tiny_batch:
        yield Hit(
            message=f"{shown(batch)}: batch normalisation over {batch.value} samples in fp16",
            setting=batch,
            remedy=Remedy(text="Use synchronised batch normalisation, group normalisation, or a larger batch."),
        )


RULE = Rule(
    code="CFG410", severity=Severity.INFO, confidence=Confidence.MEDIUM, cause="model-numerics", needs=("micro_batch", "compute_dtype"), check=_check
)
