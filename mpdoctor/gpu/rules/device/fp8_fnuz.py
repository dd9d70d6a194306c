"""fp8 on this GPU is not the fp8 of other GPUs.

What it looks for
    AMD MI300 (gfx94x), whose fp8 is the FNUZ encoding.

Why training breaks
    e4m3fnuz reaches 240, OCP's e4m3 448; the same bits mean half the value. Checkpoints and scales in fp8 that were made on an H100 are wrong
    here by a factor of two, or saturate.

When it is fine
    bf16 and fp16 are the same everywhere; libraries that convert between the encodings (torch has both dtypes).

How to confirm
    `torch.finfo(torch.float8_e4m3fnuz).max` is 240.

References
    ROCm precision support; LLVM's description of the FNUZ types.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """By LLVM target."""
    if str(gpu.metric("target").value or "").startswith("gfx94"):
        yield Hit(
            message="fp8 here is FNUZ (largest e4m3 value 240, not 448): fp8 weights and scales of other GPUs do not fit",
            at=gpu.ref,
            remedy=Remedy(text="Use torch.float8_e4m3fnuz, and convert fp8 checkpoints on the way."),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU214", severity=Severity.INFO, check=check)
