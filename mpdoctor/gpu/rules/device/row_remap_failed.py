"""A broken memory row could not be replaced.

What it looks for
    The driver's flag that a row remapping failed (Ampere and later).

Why training breaks
    The bank has no spare rows left: the broken row stays in use, and jobs that touch it die.

When it is fine
    Never: NVIDIA asks for a replacement.

How to confirm
    `nvidia-smi -q -d ROW_REMAPPER`, "Remapping Failure Occurred: Yes".

References
    NVIDIA GPU memory error management, docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Read the flag."""
    if gpu.metric("remap_failed").value:
        yield Hit(message="a broken memory row could not be replaced: no spare rows left", at=gpu.ref, remedy=Remedy(text="Have this GPU replaced."))


RULE: Rule[GpuInfo] = Rule(
    code="GPU303", severity=Severity.ERROR, confidence=Confidence.MEDIUM, check=check, cause="hardware", needs=("remap_failed",)
)
