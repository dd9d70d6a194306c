"""One look at this machine (or at a recorded one): every backend, then what the environment and the kernel log add."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.gpu import kernel_log, torch_install
from mpdoctor.gpu.backends import nvml
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.visible import VARIABLES, visible

LIMIT = 30.0
"""Seconds that reading the GPUs may take. A driver without persistence mode needs one to three per GPU."""

HERE = Path("/")


def probe(
    *, limit: float = LIMIT, root: Path = HERE, log: Path | None = None, environ: Mapping[str, str] | None = None, ask_nvml: bool | None = None
) -> Machine:
    """Read the machine. Never raises for what a driver or a file does.

    Args:
        limit: seconds that the vendors' libraries may take.
        root: where `/sys`, `/proc` and `/var/log` are looked for; NVML is asked only for the real one.
        log: a file with the kernel log (`dmesg > FILE`), instead of the kernel's own buffer.
        environ: the environment that says which devices are visible; this process's own by default.
        ask_nvml: whether to ask NVML; by default for the real machine only.
    """
    here = root == HERE
    environ = os.environ if environ is None else environ
    ask_nvml = here if ask_nvml is None else ask_nvml
    asked = nvml.start(limit=limit, kernel_log=log is None) if ask_nvml else nvml.Driver(state="not-asked", detail="a recorded machine")
    others, cpu = _other_vendors(root, limit)
    driver, nvidia = nvml.finish(asked, root)
    lines = _lines(driver, nvidia, root, log)
    nvidia = tuple(_with_xids(gpu, lines) for gpu in nvidia)
    gpus = nvidia + others
    primary = nvidia or tuple(gpu for gpu in others if gpu.vendor == "amd")
    machine = Machine(
        gpus=gpus,
        cpu=cpu,
        driver=driver,
        visible=visible(primary, environ) if primary else None,
        environ={name: environ[name] for name in VARIABLES if name in environ},
        torch=torch_install.installed() if here else None,
        kernel_log=Reading(len(lines.value)) if lines.value is not None else Reading(None, lines.reason),
    )
    return machine if machine.accelerators else replace(machine, gpus=(*gpus, cpu))


def of_named(gpus: Sequence[GpuInfo]) -> Machine:
    """A machine of GPUs that were only named: nothing is asked, nothing is known of their health."""
    from mpdoctor.gpu.backends import cpu

    driver = nvml.Driver(state="not-asked", detail="the GPUs were named")
    return Machine(gpus=tuple(gpus), cpu=cpu.read(), driver=driver, torch=torch_install.installed(), named=True)


def _other_vendors(root: Path, limit: float) -> tuple[tuple[GpuInfo, ...], GpuInfo]:
    """GPUs that are not NVIDIA's, and the CPU. The backends are imported only where their kernel interfaces exist."""
    from mpdoctor.gpu.backends import cpu

    found: tuple[GpuInfo, ...] = ()
    if (root / "sys/class/drm").is_dir() or (root / "sys/class/kfd").is_dir():
        from mpdoctor.gpu.backends import amd, intel

        found += amd.read(root, limit=limit, library=root == HERE) + intel.read(root)
    if not (root / "proc").is_dir():
        from mpdoctor.gpu.backends import apple

        found += apple.read(root)
    return found, cpu.read(root)


def _lines(driver: nvml.Driver, gpus: Sequence[GpuInfo], root: Path, log: Path | None) -> Reading[list[str]]:
    """NVIDIA's lines of the kernel log, from the file that was named, the kernel's buffer, or the system's log files."""
    if log is not None:
        return kernel_log.read(log)
    if not gpus and driver.state in ("absent", "not-asked"):
        return Reading(None, "no NVIDIA driver")
    return driver.kernel_log if driver.kernel_log else kernel_log.fallback(root, driver.kernel_log.reason)


def _with_xids(gpu: GpuInfo, lines: Reading[list[str]]) -> GpuInfo:
    """A GPU with its Xid errors; without a PCI address nothing can be told apart."""
    where = kernel_log.address(str(gpu.metric("pci_bus_id").value or ""))
    if lines.value is None or where is None:
        events: Reading[Any] = Reading(None, lines.reason if lines.value is None else "its PCI address is not known")
    else:
        found = kernel_log.xids(lines.value).get(where, [])
        events = Reading([{"xid": xid.number, "count": xid.count, "last": xid.last} for xid in found])
    return replace(gpu, metrics={**gpu.metrics, "xids": events})
