"""A clipping threshold that does nothing, or starves the run.

What it looks for
A largest gradient norm above 100 or below 1e-3.

Why training breaks
Gradients of trained models have norms of 0.1 to 10. Above 100 nothing is ever clipped; below 1e-3 every step is cut to a thousandth.

When it is fine
detectron2's full-model clipping at 0.01 is customary and not reported.

Example
```yaml hf_trainer bad
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_grad_norm: 1000
```

Instead
```yaml hf_trainer good
learning_rate: 2.0e-5
output_dir: out
bf16: true
max_grad_norm: 1.0
```

How to confirm
Compare with the gradient norms in the log.

References
detectron2 and Mask2Former configs (clip 0.01, full_model)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    norm, kind = run.config.clip_norm, run.config.clip_kind.value
    if norm.value is None or norm.value <= 0 or kind not in ("norm", "full_model"):
        return
    if norm.value > run.thresholds.clip_high:
        yield Hit(message=f"{shown(norm)}: gradients are never that long, so nothing is clipped", setting=norm, remedy=Remedy(text="Use 1.0."))
    elif norm.value < run.thresholds.clip_low:
        yield Hit(message=f"{shown(norm)}: every step is cut to a fraction", setting=norm, remedy=Remedy(text="Use 0.1 to 10."))


RULE = Rule(code="CFG403", severity=Severity.INFO, confidence=Confidence.MEDIUM, cause="learning-rate", check=_check)
