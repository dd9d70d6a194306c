"""Which devices the environment leaves to a process, and in which order it will count them.

Integers in `CUDA_VISIBLE_DEVICES` are CUDA's ordinals. They are NVML's (and nvidia-smi's) only with `CUDA_DEVICE_ORDER=PCI_BUS_ID` or when all
GPUs are alike: by default CUDA puts the fastest first. Parsed as torch does (`torch.cuda._parse_visible_devices`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.record import dataclass

VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")

PCI_ORDER = "PCI_BUS_ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleDevice:
    """One device as a process will number it.

    Attributes:
        ordinal: number of the device inside the process (`cuda:0`).
        index: NVML's index (AMD: the driver's), None where the order cannot be told.
        name: name, or the entry of the variable where the device cannot be told.
        uuid: identity, None where unknown.
    """

    ordinal: int
    index: int | None
    name: str
    uuid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """What the environment leaves visible.

    Attributes:
        variable: name of the variable that decides, None when none is set.
        value: its text.
        devices: the devices, in the process's order.
        hidden: indices of the devices that are left out; empty where that cannot be told.
        uncertain: why indices and order are not sure; empty when they are.
        problem: why the list ends early or is empty, in words; empty when nothing is wrong with it.
    """

    variable: str | None
    value: str | None
    devices: tuple[VisibleDevice, ...]
    hidden: tuple[int, ...] = ()
    uncertain: str = ""
    problem: str = ""

    @property
    def certain(self) -> bool:
        """Whether indices and order are sure."""
        return not self.uncertain


MIXED = "the GPUs differ and CUDA counts the fastest first"
MIG = "MIG is on: a process sees one MIG device, or a GPU that is not divided"


def visible(gpus: Sequence[GpuInfo], environ: Mapping[str, str]) -> Visible:
    """What `environ` leaves of `gpus`, which are all of one vendor and in the driver's order."""
    if gpus and gpus[0].vendor == "amd":
        return _visible_amd(gpus, environ)
    value = environ.get("CUDA_VISIBLE_DEVICES")
    if value is not None and value.startswith(("GPU-", "MIG-")):
        return _by_uuid(value, gpus)
    usable = [gpu for gpu in gpus if gpu.metric("state").value in (None, "ok")]
    uncertain = _uncertain(usable, environ)
    variable = None if value is None else "CUDA_VISIBLE_DEVICES"
    ordinals, problem = (list(range(len(usable))), "") if value is None else _ordinals(value)
    beyond = next((i for i, ordinal in enumerate(ordinals) if ordinal >= len(usable)), None)
    if beyond is not None:
        problem = f"there is no device {ordinals[beyond]} ({len(usable)} usable): the list ends there"
        ordinals = ordinals[:beyond]
    if uncertain and ordinals:
        unsure = tuple(VisibleDevice(ordinal=i, index=None, name=f"CUDA device {ordinal}", uuid=None) for i, ordinal in enumerate(ordinals))
        return Visible(variable=variable, value=value, devices=unsure, uncertain=uncertain, problem=problem)
    chosen = [usable[ordinal] for ordinal in ordinals]
    return Visible(variable=variable, value=value, devices=_numbered(chosen), hidden=_hidden(gpus, chosen), problem=problem)


def _uncertain(usable: Sequence[GpuInfo], environ: Mapping[str, str]) -> str:
    """Why CUDA's numbers cannot be told from here; empty when they can."""
    if any(gpu.metric("mig_enabled").value for gpu in usable):
        return MIG
    alike = len({gpu.name for gpu in usable}) <= 1
    return "" if alike or environ.get("CUDA_DEVICE_ORDER") == PCI_ORDER else MIXED


def _numbered(chosen: Sequence[GpuInfo]) -> tuple[VisibleDevice, ...]:
    return tuple(VisibleDevice(ordinal=i, index=gpu.ref.index, name=gpu.name, uuid=gpu.ref.uuid) for i, gpu in enumerate(chosen))


def _hidden(gpus: Sequence[GpuInfo], chosen: Sequence[GpuInfo]) -> tuple[int, ...]:
    kept = {gpu.ref.index for gpu in chosen}
    return tuple(gpu.ref.index for gpu in gpus if gpu.ref.index is not None and gpu.ref.index not in kept)


def _ordinals(value: str) -> tuple[list[int], str]:
    """The ordinals of a list, and what is wrong with it. `1gpu2` counts as 1; a repeated one empties the list; an invalid one ends it."""
    if not value.strip():
        return [], "the variable is empty: no device is visible"
    found: list[int] = []
    for entry in value.split(","):
        number = re.match(r"[+-]?\d+", entry.strip())
        if number is None or int(number[0]) < 0:
            what = f"{entry.strip()!r} is no device: the list ends there"
            return found, what if found else f"{entry.strip()!r} is no device: no device is visible"
        if int(number[0]) in found:
            return [], f"{int(number[0])} is listed twice: no device is visible"
        found.append(int(number[0]))
    return found, ""


def _by_uuid(value: str, gpus: Sequence[GpuInfo]) -> Visible:
    """A list of UUIDs (`GPU-...`, as short as is unique) or MIG devices (`MIG-...`, or `MIG-GPU-uuid/gi/ci`)."""
    prefix = value[:4]
    chosen: list[VisibleDevice] = []
    problem = ""
    entries = value.split(",")
    for entry in entries:
        matching = _identified(entry.strip(), gpus)
        if not entry.startswith(prefix):
            problem = f"{entry!r} does not start with {prefix}: the list ends there"
        elif len(matching) != 1:
            problem = f"{entry} is {'no device here' if not matching else 'short for several devices'}: the list ends there"
        elif any(device.uuid == matching[0].uuid for device in chosen):
            chosen, problem = [], f"{entry} is listed twice: no device is visible"
        else:
            device = matching[0]
            chosen.append(VisibleDevice(ordinal=len(chosen), index=device.index, name=device.name, uuid=device.uuid))
            continue
        break
    if not chosen and "list ends there" in problem:
        problem = problem.replace("the list ends there", "no device is visible")
    if prefix == "MIG-" and len(chosen) > 1:
        problem = problem or "CUDA shows a process one MIG device only (drivers before 570 always): the first of the list"
    kept = {device.index for device in chosen}
    hidden = tuple(gpu.ref.index for gpu in gpus if gpu.ref.index is not None and gpu.ref.index not in kept)
    return Visible(variable="CUDA_VISIBLE_DEVICES", value=value, devices=tuple(chosen), hidden=hidden, problem=problem)


def _identified(entry: str, gpus: Sequence[GpuInfo]) -> list[VisibleDevice]:
    if entry.startswith("GPU-"):
        return [
            VisibleDevice(ordinal=0, index=gpu.ref.index, name=gpu.name, uuid=gpu.ref.uuid) for gpu in gpus if (gpu.ref.uuid or "").startswith(entry)
        ]
    found = []
    for gpu in gpus:
        slices = gpu.metric("mig_devices").value
        for mig in slices if isinstance(slices, list) else []:
            old_form = f"MIG-{gpu.ref.uuid}/{mig['gpu_instance']}/{mig['compute_instance']}"
            if (mig["uuid"] or "").startswith(entry) or old_form == entry:
                found.append(VisibleDevice(ordinal=0, index=gpu.ref.index, name=mig["name"] or gpu.name, uuid=mig["uuid"] or old_form))
    return found


def _visible_amd(gpus: Sequence[GpuInfo], environ: Mapping[str, str]) -> Visible:
    """ROCR filters first, then HIP (which also heeds CUDA's variable); each counts what the one before left."""
    left = list(gpus)
    variable = value = None
    problem = ""
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in environ else "CUDA_VISIBLE_DEVICES"):
        if name not in environ:
            continue
        variable, value = name, environ[name]
        if value.startswith("GPU-"):
            wanted = [gpu for entry in value.split(",") for gpu in left if (gpu.ref.uuid or "") == entry.strip()]
            problem = problem if len(wanted) == len(value.split(",")) else f"{name} names a device that is not here"
        else:
            ordinals, problem = _ordinals(value)
            wanted = [left[ordinal] for ordinal in ordinals if ordinal < len(left)]
            if len(wanted) < len(ordinals):
                problem = f"{name} names a device that is not here"
        left = wanted
    return Visible(variable=variable, value=value, devices=_numbered(left), hidden=_hidden(gpus, left), problem=problem)
