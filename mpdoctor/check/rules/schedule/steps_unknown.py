"""A schedule whose length nobody knows.

What it looks for
A decaying schedule with `max_steps: -1` and no epochs.

Why training breaks
The schedule needs its length: frameworks raise, or decay over a default.

When it is fine
Constant schedules.

Example
```yaml axolotl bad
base_model: meta-llama/Llama-3.1-8B
pretraining_dataset: [{path: c4}]
sequence_len: 2048
micro_batch_size: 8
lr_scheduler: cosine
learning_rate: 0.0001
bf16: true
```

Instead
```yaml axolotl good
base_model: meta-llama/Llama-3.1-8B
pretraining_dataset: [{path: c4}]
sequence_len: 2048
micro_batch_size: 8
lr_scheduler: cosine
learning_rate: 0.0001
max_steps: 10000
bf16: true
```

How to confirm
The learning rate in the log.

References
transformers `optimization.py`; Axolotl asks for max_steps with streamed data
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.training import Origin, Setting


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("axolotl"):
        streamed = file.node("pretraining_dataset")
        decays = str(file.config.schedule.value or "").startswith(("cosine", "linear", "poly", "warmup_stable"))
        if streamed is not None and streamed.value and decays and not file.config.total_steps.known and file.node("num_epochs") is None:
            setting = file.config.schedule
            yield Hit(
                message=f"{shown(setting)} over streamed data of unknown length, and no `max_steps`",
                setting=Setting(setting.value, Origin.DERIVED, setting.at, setting.raw),
                remedy=Remedy(text="Set `max_steps`."),
            )


RULE = Rule(code="CFG820", severity=Severity.INFO, check=_check)
