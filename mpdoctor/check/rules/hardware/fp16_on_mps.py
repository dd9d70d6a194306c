"""16-bit training on an Apple GPU.

What it looks for
fp16 or bf16 compute on Apple silicon (MPS).

Why training breaks
Users report gradients of NaN and a loss that drops to 0.0 within twenty steps in fp16 on MPS. Autocast needs PyTorch 2.5 there (bf16: 2.6),
and operations that fall back to the CPU leave the 16-bit path unnoticed.

When it is fine
With a recent PyTorch, after a comparison with fp32 on the same steps.

Example
```yaml hf_trainer bad gpu=m2
fp16: true
learning_rate: 2.0e-4
output_dir: out
```

Instead
```yaml hf_trainer good gpu=m2
fp16: false
bf16: false
learning_rate: 2.0e-4
output_dir: out
```

How to confirm
`mpdoctor replay CHECKPOINT --precision fp32`: the failure is gone.

References
accelerate `accelerator.py` (version checks for MPS)
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject, shown
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute, gpu = run.config.compute_dtype, run.made_by("apple")
    if compute.value in SIXTEEN_BIT and gpu is not None:
        yield Hit(
            message=f"{shown(compute)}: 16-bit training on {gpu.name} (MPS) is known for NaN gradients and a loss that falls to 0",
            setting=compute,
            confidence=Confidence.MEDIUM,
            remedy=Remedy(text="Train in fp32 on MPS, or compare the first steps with fp32."),
        )


RULE = Rule(code="CFG108", severity=Severity.WARNING, cause="kernel", needs=("compute_dtype", "gpus"), check=_check)
