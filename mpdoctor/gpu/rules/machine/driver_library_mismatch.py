"""NVIDIA's kernel driver and its library have different versions.

What it looks for
    NVML refuses to start with "Driver/library version mismatch".

Why training breaks
    The driver's files were upgraded while the old kernel module is still loaded, often by unattended upgrades. Jobs that run go on; every new
    CUDA process fails at once.

When it is fine
    Never: no new job can start.

How to confirm
    `nvidia-smi` exits with 18. `cat /proc/driver/nvidia/version` shows the loaded version, `modinfo nvidia` the installed one.

References
    nvidia-smi's return code 18; gpustat#147.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """NVML's own words decide."""
    if machine.driver.state == "mismatch":
        yield Hit(
            message="the NVIDIA driver was upgraded and not reloaded: new CUDA jobs cannot start",
            remedy=Remedy(text="Reboot, or unload and load the nvidia kernel modules."),
        )


RULE: Rule[Machine] = Rule(code="GPU101", severity=Severity.ERROR, check=check)
