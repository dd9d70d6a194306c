"""fp8 and fp4 work on this Blackwell GPU, but not with every recipe.

What it looks for
    Compute capability 12.x: GeForce RTX 50, RTX PRO Blackwell, GB10.

Why training breaks
    Transformer Engine has no MXFP8 on 12.x, and its default NVFP4 recipe (random Hadamard transform, stochastic rounding) ends with "CUDA Error:
    invalid argument". The recipes of a B200 do not carry over.

When it is fine
    bf16, or fp8 with per-tensor or current scaling.

How to confirm
    Run one layer under `te.fp8_autocast` with the recipe.

References
    TransformerEngine#2255, #2372, #2956.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """By compute capability."""
    capability = gpu.compute_capability.value
    if gpu.vendor == "nvidia" and capability and (12, 0) <= capability < (13, 0):
        yield Hit(
            message="fp8 here is per-tensor or current scaling only; MXFP8 and the default NVFP4 recipe fail on 12.x",
            at=gpu.ref,
            remedy=Remedy(
                text="For fp8 use Float8CurrentScaling; for NVFP4 use NVFP4BlockScaling(disable_rht=True, disable_stochastic_rounding=True)."
            ),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU212", severity=Severity.INFO, check=check, needs=("compute_capability",))
