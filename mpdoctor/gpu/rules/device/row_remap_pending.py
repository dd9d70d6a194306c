"""A broken memory row waits to be replaced.

What it looks for
    The driver's flag that a row remapping is pending (Ampere and later).

Why training breaks
    The row is still in use until the GPU is reset. The error that found it has already ended one program.

When it is fine
    Until the next reset, jobs that do not touch that row are safe.

How to confirm
    `nvidia-smi -q -d ROW_REMAPPER`, "Pending: Yes".

References
    NVIDIA GPU memory error management; Xid 63.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Read the flag."""
    if gpu.metric("remap_pending").value:
        yield Hit(
            message="a broken memory row waits to be replaced by a reset",
            at=gpu.ref,
            remedy=Remedy(text="Drain the GPU and reset it: nvidia-smi --gpu-reset."),
        )


RULE: Rule[GpuInfo] = Rule(
    code="GPU304", severity=Severity.WARNING, confidence=Confidence.MEDIUM, check=check, cause="hardware", needs=("remap_pending",)
)
