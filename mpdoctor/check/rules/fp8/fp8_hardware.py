"""fp8 on a GPU without fp8 units.

What it looks for
fp8 training on an NVIDIA GPU below compute capability 8.9.

Why training breaks
Composer raises; Accelerate warns and switches to fp16, not bf16, without saying more. Then the run needs loss scaling and overflows like any
fp16 run.

When it is fine
Never.

Example
```yaml accelerate bad gpu=a100
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID}
```

Instead
```yaml accelerate good gpu=h100
distributed_type: MULTI_GPU
num_processes: 8
mixed_precision: fp8
fp8_config: {backend: TE, fp8_format: HYBRID}
```

How to confirm
`mpdoctor gpu --require fp8`

References
accelerate `state.py`; Composer's check for compute capability 8.9
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    fp8, gpu = run.config.fp8, run.below(8, 9)
    if not fp8.value:
        return
    if not run.gpus and fp8.explicit:
        yield Hit(
            message=f"{shown(fp8)}: fp8 needs compute capability 8.9 (Ada, Hopper) or later; Accelerate falls back to fp16 below",
            setting=fp8,
            severity=Severity.INFO,
            remedy=Remedy(text="Name the card with --gpu to have this judged."),
        )
    if gpu is not None:
        fallback = "; Accelerate falls back to fp16 without a word" if run.of("accelerate") else ""
        yield Hit(message=f"{shown(fp8)}: {capability(gpu)} has no fp8 units{fallback}", setting=fp8, remedy=Remedy(text="Train in bf16."))


RULE = Rule(code="CFG541", severity=Severity.ERROR, cause="slow-precision", check=_check)
