"""ECC is switched off on a GPU that has it.

What it looks for
    ECC mode off, or to be switched off or on by the next reset.

Why training breaks
    A flipped bit in memory is not noticed: a weight or a gradient becomes another number, at worst inf or NaN, and nothing tells. Training cannot
    tell such an error from a bug.

When it is fine
    When the memory or the speed that it costs is needed, and runs are repeated.

How to confirm
    `nvidia-smi -q -d ECC`; switch it on with `nvidia-smi -e 1` and a reboot.

References
    nvmlDeviceGetEccMode in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Current mode, and what the next reset makes of it."""
    now, later = gpu.metric("ecc_enabled").value, gpu.metric("ecc_enabled_after_reset").value
    if now is False:
        yield Hit(
            message="ECC is off: memory errors would be silent" + (", until the next reset switches it on" if later else ""),
            at=gpu.ref,
            remedy=Remedy(text="nvidia-smi -e 1, then reset or reboot." if not later else "Reset or reboot."),
        )
    elif now and later is False:
        yield Hit(
            message="the next reset will switch ECC off: memory errors would be silent then",
            at=gpu.ref,
            remedy=Remedy(text="nvidia-smi -e 1 keeps it on."),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU311", severity=Severity.WARNING, check=check, needs=("ecc_enabled",))
