"""The NVIDIA library is installed, but its kernel driver is not loaded.

What it looks for
    NVML says "Driver Not Loaded".

Why training breaks
    CUDA finds no device, and frameworks quietly train on the CPU.

When it is fine
    On a machine without an NVIDIA GPU that carries the driver's libraries, as many container images do.

How to confirm
    `lsmod | grep nvidia` is empty; `lspci | grep -i nvidia` shows whether there is a GPU at all.

References
    NVML_ERROR_DRIVER_NOT_LOADED in nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """NVML's own words decide."""
    if machine.driver.state == "not-loaded":
        yield Hit(
            message="the NVIDIA library is here, but the kernel driver is not loaded: CUDA finds no GPU",
            remedy=Remedy(text="If this machine has an NVIDIA GPU: modprobe nvidia, and look at dmesg. In a container: start it with --gpus all."),
        )


RULE: Rule[Machine] = Rule(code="GPU102", severity=Severity.WARNING, check=check)
