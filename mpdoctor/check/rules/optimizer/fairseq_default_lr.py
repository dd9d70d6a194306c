"""fairseq's Adam at its default learning rate of 0.25.

What it looks for
fairseq with an Adam-like optimizer and no learning rate.

Why training breaks
The default is meant for SGD on small models. Adam at 0.25 destroys every model in a few steps.

When it is fine
The rate is given on the command line.

Example
```yaml fairseq bad
common: {fp16: true}
task: {_name: language_modeling, data: /data}
optimization: {max_update: 1000, clip_norm: 1.0}
optimizer: {_name: adam}
criterion: {_name: cross_entropy}
```

Instead
```yaml fairseq good
common: {fp16: true}
task: {_name: language_modeling, data: /data}
optimization: {max_update: 1000, clip_norm: 1.0, lr: [0.0005]}
optimizer: {_name: adam}
criterion: {_name: cross_entropy}
```

How to confirm
The learning rate in the log's first lines.

References
fairseq `dataclass/configs.py`, OptimizationConfig
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin


def _check(run: CheckSubject) -> Iterator[Hit]:
    lr = run.config.lr
    if run.dialect == "fairseq" and run.adam and lr.origin is Origin.DEFAULT:
        yield Hit(
            message="no learning rate: fairseq's default is 0.25, which destroys a model under Adam",
            setting=run.config.optimizer,
            identity="missing",
            remedy=Remedy(text="Set `optimization.lr: [0.0005]` or what your recipe says."),
        )


RULE = Rule(code="CFG323", severity=Severity.ERROR, cause="learning-rate", check=_check)
