"""fp16 on a GPU without tensor cores.

What it looks for
fp16 compute on an NVIDIA GPU below compute capability 7.0.

Why training breaks
Pascal and older have no tensor cores: fp16 gives no speed (most of these cards run it at 1/64 of fp32's rate) and all of its risks.

When it is fine
To save activation memory, at the price of speed. The P100 alone runs fp16 at twice fp32's rate.

Example
```yaml hf_trainer bad gpu=1080ti
fp16: true
learning_rate: 2.0e-5
output_dir: out
```

Instead
```yaml hf_trainer good gpu=1080ti
fp16: false
learning_rate: 2.0e-5
output_dir: out
```

How to confirm
Time ten steps in fp32 and in fp16.

References
NVIDIA CUDA C++ Programming Guide, arithmetic throughput per compute capability
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import CheckSubject, capability, shown
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    compute, gpu = run.config.compute_dtype, run.below(7)
    if compute.value == "fp16" and gpu is not None:
        yield Hit(
            message=f"{shown(compute)}: {capability(gpu)} has no tensor cores, so fp16 brings its risks and no speed",
            setting=compute,
            remedy=Remedy(text="Train in fp32."),
        )


RULE = Rule(code="CFG110", severity=Severity.WARNING, cause="slow-precision", needs=("compute_dtype", "gpus"), check=_check)
