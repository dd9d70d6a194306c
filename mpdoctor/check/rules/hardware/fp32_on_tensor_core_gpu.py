"""No mixed precision on a GPU with tensor cores.

What it looks for
fp32 training on an NVIDIA GPU of compute capability 7.0 or later.

Why training breaks
It does not break; it wastes the card. An A100 multiplies fp32 matrices at 19.5 TFLOPS, in TF32 at 156, in bf16 at 312; activations take
twice the memory.

When it is fine
As the reference when something breaks in 16 bits, and for small models whose time goes elsewhere.

Example
```yaml hf_trainer bad gpu=a100
learning_rate: 2.0e-5
output_dir: out
fp16: false
bf16: false
```

Instead
```yaml hf_trainer good gpu=a100
learning_rate: 2.0e-5
output_dir: out
bf16: true
```

How to confirm
`mpdoctor replay CHECKPOINT` prints the share of matrix-product work that ran in each dtype.

References
NVIDIA A100 data sheet; stas00/ml-engineering, compute/accelerator
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute = run.config.compute_dtype
    gpu = run.at_least(7)
    if compute.value != "fp32" or gpu is None:
        return
    better = "bf16" if run.at_least(8) else "fp16 with dynamic loss scaling"
    yield Hit(
        message=f"{shown(compute)}: fp32 on {capability(gpu)}, whose tensor cores are several times faster in 16 bits",
        setting=compute,
        remedy=Remedy(text=f"Train in {better}, unless fp32 is meant as the reference."),
    )


RULE = Rule(code="CFG104", severity=Severity.INFO, cause="slow-precision", needs=("compute_dtype", "gpus"), check=_check)
