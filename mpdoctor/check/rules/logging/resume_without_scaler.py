"""An fp16 run that is resumed, and whose checkpoints hold no scaler.

What it looks for
fp16 with `save_only_model` and a checkpoint to resume from.

Why training breaks
The scale starts at 2^16 again and the moments at zero: skipped steps, then large ones.

When it is fine
A fresh start from weights is meant.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
fp16: true
save_only_model: true
resume_from_checkpoint: out/checkpoint-500
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
fp16: true
save_only_model: false
resume_from_checkpoint: out/checkpoint-500
```

How to confirm
Look for scaler.pt and optimizer.pt in the checkpoint.

References
transformers `trainer.py`, _load_scaler
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.remedy import change, remedy
from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    only, resume = run.config.save_only_model, run.config.resume
    if run.computes_in == "fp16" and only.value and resume.known and str(resume.value).lower() not in ("false", "none", ""):
        yield Hit(
            message=f"{shown(only)} with {shown(resume)}: loss scale and moments start anew",
            setting=only,
            remedy=remedy("Keep full checkpoints.", change(only, "false")),
        )


RULE = Rule(code="CFG609", severity=Severity.INFO, cause="checkpoint", check=_check)
