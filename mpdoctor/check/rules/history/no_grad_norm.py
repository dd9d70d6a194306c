"""A log without gradient norms.

What it looks for
A Trainer's log whose entries have a loss and no gradient norm.

Why training breaks
It does not, but the gradient norm is the first sign of trouble, some steps before the loss.

When it is fine
transformers logs it always since 4.38.

Example
```json checkpoint_facts bad
{"global_step": 20, "log_history": [{"step": 10, "loss": 2.1, "learning_rate": 1e-05}, {"step": 20, "loss": 2.0, "learning_rate": 1e-05}]}
```

Instead
```json checkpoint_facts good
{"global_step": 20, "log_history": [{"step": 10, "loss": 2.1, "grad_norm": 0.9}, {"step": 20, "loss": 2.0, "grad_norm": 1.1}]}
```

How to confirm
Look for `grad_norm` in the log.

References
transformers `trainer.py`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    for file in run.of("checkpoint_facts"):
        log = file.node("log_history")
        entries = [entry for entry in log.items if entry.get("loss") is not None] if log is not None else []
        if len(entries) >= 2 and all(entry.get("grad_norm") is None for entry in entries) and log is not None:
            yield Hit(
                message="the log has no gradient norms, the first sign of trouble",
                at=log.span("log_history"),
                identity="grad_norm",
                remedy=Remedy(text="Log the gradient norm (transformers 4.38 and later do)."),
            )


RULE = Rule(code="CFG602", severity=Severity.INFO, check=_check)
