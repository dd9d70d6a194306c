"""This GPU flushes subnormal fp16 and bf16 values to zero.

What it looks for
    AMD MI200 (gfx90a), whose matrix instructions treat subnormals as zero.

Why training breaks
    fp16 values below 6.1e-5 vanish inside matrix products, three orders of magnitude earlier than on other GPUs (6e-8): gradients underflow
    although the loss scale looks right.

When it is fine
    bf16, whose subnormals are smaller than any gradient. MIOpen's and rocBLAS's alternate implementation avoids it in the backward pass.

How to confirm
    Multiply a matrix of 1e-5 by the identity in fp16: the product is zero.

References
    rocm.docs.amd.com, MIOpen, MI200 alternate implementation.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """By LLVM target."""
    if str(gpu.metric("target").value or "").startswith("gfx90a"):
        yield Hit(
            message="fp16 values below 6.1e-5 become zero in matrix products on this GPU (MI200)",
            at=gpu.ref,
            remedy=Remedy(
                text="Train in bf16; for fp16 keep MIOPEN_DEBUG_CONVOLUTION_ATTRIB_FP16_ALT_IMPL and ROCBLAS's alternate implementation on."
            ),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU213", severity=Severity.INFO, check=check)
