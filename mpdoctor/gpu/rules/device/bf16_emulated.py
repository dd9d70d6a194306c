"""bf16 is emulated on this GPU.

What it looks for
    A GPU that widens bf16 to fp32, computes there and rounds back (NVIDIA 7.0 to 7.5, AMD before CDNA and RDNA3, Apple M1 and M2).

Why training breaks
    It does not break: it is slower than fp32 (under half its speed on a T4), without cuDNN convolutions, and torch.compile refuses it on NVIDIA.

When it is fine
    When the run is in fp16 with loss scaling, or in fp32.

How to confirm
    Time one matrix product in bf16 and in fp32.

References
    openxla#12429; pytorch#118122; `mpdoctor explain bf16`
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo, Support
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """The capability table decides, not torch."""
    if gpu.formats.bf16 is Support.EMULATED and gpu.source != "cpu":
        trained = "fp16 with a loss scaler" if gpu.formats.fp16.native else "fp32"
        yield Hit(message="bf16 is only emulated here, slower than fp32", at=gpu.ref, remedy=Remedy(text=f"Train in {trained} on this GPU."))


RULE: Rule[GpuInfo] = Rule(code="GPU211", severity=Severity.INFO, check=check)
