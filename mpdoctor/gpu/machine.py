"""Everything that was read of a machine: the subject of the rules that look at more than one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.record import dataclass
from mpdoctor.gpu.backends.nvml import Driver
from mpdoctor.gpu.require import Requirement
from mpdoctor.gpu.torch_install import TorchInstall
from mpdoctor.gpu.visible import Visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine at one instant.

    Attributes:
        gpus: its GPUs; and the CPU, where none of them can train.
        cpu: its CPU.
        driver: the NVIDIA driver.
        visible: what the environment leaves to a process; None for GPUs that were only named.
        environ: the environment's variables about devices.
        torch: the installed torch, None when there is none.
        torch_says: what torch itself says when it is imported (`--torch`), None when it was not asked.
        kernel_log: whether the kernel log was read: number of NVIDIA's lines, or why not.
        required: what `--require` asks for.
        named: whether the GPUs were named on the command line and need not be here.
    """

    gpus: tuple[GpuInfo, ...]
    cpu: GpuInfo
    driver: Driver
    visible: Visible | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    torch: TorchInstall | None = None
    torch_says: Mapping[str, Any] | None = None
    kernel_log: Reading[int] = field(default_factory=lambda: Reading(None, "not read"))
    required: tuple[Requirement, ...] = ()
    named: bool = False

    @property
    def accelerators(self) -> tuple[GpuInfo, ...]:
        """The GPUs that a run can use: all that were named; of those in the machine one maker's, without lost ones and integrated graphics."""
        if self.named:
            return self.gpus
        usable = [gpu for gpu in self.gpus if gpu.metric("state").value in (None, "ok") and not gpu.metric("integrated").value]
        for vendor in ("nvidia", "amd", "intel", "apple"):
            found = tuple(gpu for gpu in usable if gpu.vendor == vendor and gpu.source != "cpu")
            if found:
                return found
        return ()


def known(machine: Machine, name: str) -> bool:
    """Whether a field has a value (for `Rule.needs`)."""
    return name in {f.name for f in fields(machine)} and getattr(machine, name) not in (None, (), "")
