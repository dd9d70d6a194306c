"""The GPU is divided into MIG devices.

What it looks for
    MIG mode on with MIG devices, or a change of the mode that waits for a reset.

Why training breaks
    A process sees one MIG device only (no NCCL between them), with its share of memory; the parent's memory counters need not be readable, and
    error counters are the parent's.

When it is fine
    When a slice is what the job was planned for.

How to confirm
    `nvidia-smi -L`.

References
    NVIDIA MIG user guide; pytorch#92315; toolkit#842.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """List the slices."""
    slices = gpu.metric("mig_devices").value or []
    if slices:
        names = ", ".join(f"{(mig['name'] or '').rpartition('MIG ')[2] or 'MIG'} ({mig['uuid']})" for mig in slices)
        yield Hit(message=f"divided into {len(slices)} MIG device{'s' if len(slices) != 1 else ''}: {names}; a process sees one of them", at=gpu.ref)
    if gpu.metric("mig_enabled").value is not gpu.metric("mig_enabled_after_reset").value:
        later = "on" if gpu.metric("mig_enabled_after_reset").value else "off"
        yield Hit(message=f"the next reset switches MIG {later}", at=gpu.ref, identity="after-reset")


RULE: Rule[GpuInfo] = Rule(code="GPU405", severity=Severity.INFO, check=check, needs=("mig_enabled",))
