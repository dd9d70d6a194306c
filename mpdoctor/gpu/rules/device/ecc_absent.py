"""This GPU shows no memory errors: it has no ECC, or does not tell.

What it looks for
    A GPU that was read and that has no ECC mode.

Why training breaks
    It need not. But a flipped bit would not be noticed, and "no errors" cannot be said: there is nobody who counts them.

When it is fine
    Nearly all consumer cards are so; unstable overclocks and faulty memory are rare, and rarer than bugs.

How to confirm
    Repeat the failing step: `mpdoctor replay` runs it twice and compares the bits.

References
    darknet#5547, faceswap#310 (overclocked or badly seated cards).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """A readable GPU without an ECC mode. In a vGPU guest GPU407 says more."""
    told_elsewhere = gpu.metric("virtualization").value == "vgpu-guest" or gpu.metric("integrated").value
    if gpu.metric("state").value == "ok" and gpu.metric("ecc_enabled").value is None and not told_elsewhere:
        yield Hit(message=f"no ECC data ({gpu.metric('ecc_enabled').reason}): memory errors would be silent", at=gpu.ref)


RULE: Rule[GpuInfo] = Rule(code="GPU312", severity=Severity.INFO, check=check, needs=("state",))
