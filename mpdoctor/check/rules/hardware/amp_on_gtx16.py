"""Mixed precision on a GPU whose fp16 arithmetic is known to be broken.

What it looks for
fp16 compute on GTX 1630/1650/1660, T400 to T2000 and their mobile versions, and K40m.

Why training breaks
Convolutions in fp16 give NaN losses or a mean average precision of zero on these cards. Ultralytics switches AMP off on them by name.

When it is fine
Never seen.

Example
```yaml hf_trainer bad gpu=gtx1650
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=gtx1650
fp16: false
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
The same step in fp32 gives a finite loss.

References
ultralytics `utils/checks.py`, `check_amp`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

_BROKEN = re.compile(r"GTX 16[356]0|\bT(400|500|550|600|1000|1200|2000)\b|Quadro T(1000|1200|2000)|K40m", re.IGNORECASE)


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute = run.config.compute_dtype
    gpu = next((gpu for gpu in run.gpus if _BROKEN.search(gpu.name)), None)
    if compute.value == "fp16" and gpu is not None:
        yield Hit(
            message=f"{shown(compute)}: fp16 convolutions on {gpu.name} are known to give NaN",
            setting=compute,
            remedy=Remedy(text="Train in fp32 on this card."),
        )


RULE = Rule(code="CFG109", severity=Severity.ERROR, cause="hardware", needs=("compute_dtype", "gpus"), check=_check)
