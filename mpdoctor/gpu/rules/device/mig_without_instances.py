"""MIG is on, and the GPU has not been divided.

What it looks for
    MIG mode on and no MIG device.

Why training breaks
    CUDA sees no device on this GPU at all until compute instances are made.

When it is fine
    While somebody is setting it up.

How to confirm
    `nvidia-smi mig -lgi`.

References
    NVIDIA MIG user guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Mode on, list empty."""
    if gpu.metric("mig_enabled").value and gpu.metric("mig_devices").value == []:
        yield Hit(
            message="MIG is on without a MIG device: CUDA cannot use this GPU",
            at=gpu.ref,
            remedy=Remedy(text="nvidia-smi mig -cgi PROFILE -C makes instances; nvidia-smi -mig 0 and a reset switches MIG off."),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU404", severity=Severity.WARNING, check=check, needs=("mig_enabled",))
