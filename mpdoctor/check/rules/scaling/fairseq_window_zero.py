"""fairseq's automatic scale window becomes zero.

What it looks for
More than 16384 data-parallel ranks times update frequency, with no `fp16_scale_window`.

Why training breaks
The window defaults to 2^14 divided by that product, truncated to an integer: above it is 0, and the scaler divides by it.

When it is fine
With the window set.

Example
```yaml fairseq bad
common: {fp16: true}
task: {_name: language_modeling, data: /data}
optimization: {lr: [0.0005], update_freq: [256], clip_norm: 1.0}
optimizer: {_name: adam}
criterion: {_name: cross_entropy}
distributed_training: {distributed_world_size: 128}
```

Instead
```yaml fairseq good
common: {fp16: true, fp16_scale_window: 128}
task: {_name: language_modeling, data: /data}
optimization: {lr: [0.0005], update_freq: [256], clip_norm: 1.0}
optimizer: {_name: adam}
criterion: {_name: cross_entropy}
distributed_training: {distributed_world_size: 128}
```

How to confirm
A ZeroDivisionError at the first scaler update (read from the code, not run).

References
fairseq `optim/fp16_optimizer.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    world, frequency = run.config.world_size, run.config.setting("fairseq.update_freq")
    if run.dialect != "fairseq" or run.computes_in != "fp16" or run.config.setting("fairseq.fp16_scale_window").known:
        return
    if world.value and frequency.value and world.value * frequency.value > 16384:
        yield Hit(
            message=f"{world.value} ranks x update_freq {frequency.value} is above 16384: the automatic scale window becomes 0",
            setting=frequency if frequency.explicit else world,
            confidence=Confidence.MEDIUM,
            remedy=Remedy(text="Set `common.fp16_scale_window` (128 or more)."),
        )


RULE = Rule(code="CFG215", severity=Severity.ERROR, cause="loss-scaling", check=_check)
