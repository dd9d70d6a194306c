"""mmengine's loss scale as an int.

What it looks for
`loss_scale=512` in an AmpOptimWrapper.

Why training breaks
mmengine takes a float, 'dynamic' or a dict and raises TypeError for an int.

When it is fine
Never; mmcv's older `fp16 = dict(loss_scale=512.)` takes both.

Example
```python mmengine bad
optim_wrapper = dict(type='AmpOptimWrapper', loss_scale=512, optimizer=dict(type='SGD', lr=0.01))
default_hooks = dict()
```

Instead
```python mmengine good
optim_wrapper = dict(type='AmpOptimWrapper', loss_scale='dynamic', optimizer=dict(type='SGD', lr=0.01))
default_hooks = dict()
```

How to confirm
The wrapper raises when it is built.

References
mmengine `optim/optimizer/amp_optimizer_wrapper.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    scale = run.config.setting("mmengine.loss_scale")
    if isinstance(scale.value, int) and not isinstance(scale.value, bool):
        yield Hit(
            message=f"{shown(scale)}: mmengine refuses an int; it takes a float, 'dynamic' or a dict",
            setting=scale,
            remedy=remedy("Use 'dynamic'.", change(scale, "'dynamic'")),
        )


RULE = Rule(code="CFG211", severity=Severity.ERROR, cause="loss-scaling", check=_check)
