"""The log shows a run that is already broken.

What it looks for
In a Trainer's log: a loss that is NaN or infinite, or exactly 0 after it was not, with gradient norms of NaN. A single skipped step of a healthy
fp16 run
(gradient norm NaN once, loss finite) is not reported.

Why training breaks
It has broken. Checkpoints written after that step hold weights that are NaN or were stepped on with NaN.

When it is fine
Never.

Example
```json checkpoint_facts bad
{"global_step": 20, "log_history": [{"step": 10, "loss": 14577.98, "grad_norm": NaN},
 {"step": 20, "loss": 0.0, "grad_norm": NaN}, {"step": 30, "loss": 0.0, "grad_norm": NaN}]}
```

Instead
```json checkpoint_facts good
{"global_step": 20, "log_history": [{"step": 10, "loss": 2.31, "grad_norm": NaN}, {"step": 20, "loss": 2.12, "grad_norm": 0.9}]}
```

How to confirm
`mpdoctor replay` on the last checkpoint before that step.

References
transformers `trainer_callback.py`, TrainerState.save_to_json
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.history import broken_steps
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    broken = broken_steps(run)
    if broken is not None:
        where = f"at step {broken.step}" if broken.step is not None else "in the log"
        yield Hit(
            message=f"{where}: {broken.what}; the run was broken from there on",
            at=broken.at,
            identity=f"{broken.what}|{broken.step}",
            remedy=Remedy(text="Restart from the last checkpoint before it; `mpdoctor replay CHECKPOINT` finds the cause."),
        )


RULE = Rule(code="CFG607", severity=Severity.ERROR, check=_check)
