"""fp16 training on a CPU.

What it looks for
fp16 compute where the device is a CPU.

Why training breaks
CPUs have next to no fp16 arithmetic; PyTorch's CPU autocast was made for bf16. Lightning switches to bf16 on its own, Composer raises,
plain loops crawl or stop at an operation that is missing in half precision.

When it is fine
Never for training.

Example
```yaml hf_trainer bad gpu=cpu
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=cpu
bf16: true
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
Time one step in fp32 and in fp16.

References
Lightning's accelerator connector; Composer `_validate_precision`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute, device = run.config.compute_dtype, run.made_by("cpu")
    if compute.value == "fp16" and device is not None:
        yield Hit(
            message=f"{shown(compute)}: fp16 training on a CPU is missing operations and slower than fp32",
            setting=compute,
            remedy=Remedy(text="Use bf16 on a CPU with AMX or AVX512-BF16, otherwise fp32."),
        )


RULE = Rule(code="CFG107", severity=Severity.ERROR, cause="slow-precision", needs=("compute_dtype", "gpus"), check=_check)
