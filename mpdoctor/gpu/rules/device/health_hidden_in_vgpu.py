"""A virtual GPU does not show the health of the real one.

What it looks for
    A vGPU guest.

Why training breaks
    It need not. Memory errors, remapped rows and temperature are only visible on the host.

When it is fine
    When the host is watched.

How to confirm
    Run `mpdoctor gpu` on the host.

References
    NVIDIA vGPU documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """By virtualisation mode."""
    if gpu.metric("virtualization").value == "vgpu-guest":
        yield Hit(message="this is a virtual GPU: its health can only be read on the host", at=gpu.ref)


RULE: Rule[GpuInfo] = Rule(code="GPU407", severity=Severity.INFO, check=check, needs=("virtualization",))
