"""Gradients summed in 16 bits over many ranks.

What it looks for
Gradient reduction in bf16 over 64 ranks or more (information from 16, and for fp16, which keeps three more bits).

Why training breaks
Each addition rounds to 8 or 11 bits, and errors grow with the ranks. A LLaMA-like run was stable on 96 GPUs and unstable on 384 until the
reduction went to
fp32.

When it is fine
Few ranks.

Example
```yaml accelerate bad
distributed_type: FSDP
num_processes: 128
mixed_precision: bf16
fsdp_config: {fsdp_version: 1}
```

Instead
```yaml accelerate good
distributed_type: FSDP
num_processes: 8
mixed_precision: bf16
fsdp_config: {fsdp_version: 1}
```

How to confirm
The same run with fp32 reduction for some hundred steps.

References
pytorch/pytorch#106395; Composer's PURE against DEFAULT, OLMo's pure against mixed
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def _check(run: CheckSubject) -> Iterator[Hit]:
    reduce, world = run.config.reduce_dtype, run.config.world_size.value
    if reduce.value not in SIXTEEN_BIT or world is None or world < run.thresholds.ranks_some:
        return
    yield Hit(
        message=f"gradients of {world} ranks are summed in {reduce.value}; rounding grows with the ranks",
        setting=reduce,
        severity=None if world >= run.thresholds.ranks_many and reduce.value == "bf16" else Severity.INFO,
        remedy=Remedy(text="Reduce in fp32 (`communication_data_type: fp32`, FSDP's reduce_dtype, Composer's DEFAULT)."),
    )


RULE = Rule(
    code="CFG404",
    severity=Severity.WARNING,
    confidence=Confidence.MEDIUM,
    cause="low-precision-state",
    needs=("reduce_dtype", "world_size"),
    check=_check,
)
