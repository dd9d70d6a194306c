"""GPUs that the user names, in this machine or not: `--gpu` of every command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.errors import UsageError
from mpdoctor.core.location import DeviceRef

_CAPABILITY = re.compile(r"(?:cc|compute capability)?\s*(\d{1,2})\.(\d)")
_SM = re.compile(r"(?:sm|compute)_?(\d{1,2})(\d)[af]?")
_TARGET = re.compile(r"gfx[0-9a-f]{3,5}(:[a-z0-9+:-]*)?")
_IDENTITY = re.compile(r"(gpu|mig)-[0-9a-f-]+|(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d")

NOMINAL = "nominal size of the card"


def resolve_gpus(names: Sequence[str]) -> tuple[GpuInfo, ...]:
    """The GPUs that `names` stand for, in that order, each kind once.

    Args:
        names: names (`v100`, `RTX 4090`, `8x H100`), compute capabilities (`8.6`, `sm_86`), LLVM targets (`gfx942`), UUIDs or PCI bus ids of GPUs in
            this machine, or `auto` for all GPUs in this machine. One entry may hold several, with commas.

    Returns:
        One `GpuInfo` per GPU; `source` is `table` for those that were only named. `auto` gives none on a machine without a GPU.

    Raises:
        UsageError: a name that is no GPU's, or that several GPUs have.
    """
    wanted = [part.strip() for name in names for part in name.split(",") if part.strip()]
    if names and not wanted:
        raise UsageError("--gpu is empty", "give a name (v100), a compute capability (8.6) or auto")
    present: tuple[GpuInfo, ...] | None = None
    found: list[GpuInfo] = []
    for name in wanted:
        if name.lower() == "auto" or _IDENTITY.fullmatch(name.lower()):
            if present is None:
                present = _present()
            found.extend(present if name.lower() == "auto" else [_identified(name, present)])
        else:
            found.append(named(name))
    return tuple({(gpu.name, gpu.ref.index, gpu.ref.uuid): gpu for gpu in found}.values())


def named(text: str) -> GpuInfo:
    """The GPU of a name, a compute capability or an LLVM target. Raises UsageError."""
    lowered = text.strip().lower()
    for pattern in (_CAPABILITY, _SM):
        if parts := pattern.fullmatch(lowered):
            return _of_capability(int(parts[1]), int(parts[2]))
    if _TARGET.fullmatch(lowered):
        return _of_target(lowered)
    return _of_card(text)


def _of_capability(major: int, minor: int) -> GpuInfo:
    from mpdoctor.gpu.capability import nvidia

    capability = (major, minor)
    if not nvidia.known(capability) and capability < nvidia.NEWEST_KNOWN:
        known = ", ".join(f"{a}.{b}" for a, b in nvidia.capabilities() if a == major) or "3.5 to 12.1"
        raise UsageError(f"no GPU has the compute capability {major}.{minor}", f"known: {known}")
    return GpuInfo(
        ref=DeviceRef(name=f"compute capability {major}.{minor}"),
        vendor="nvidia",
        source="table",
        compute_capability=Reading(capability),
        architecture=Reading(nvidia.architecture(capability), None if nvidia.known(capability) else "newer than the table"),
        formats=nvidia.formats(capability),
    )


def _of_target(text: str) -> GpuInfo:
    from mpdoctor.gpu.capability import amd

    target = amd.clean(text)
    architecture = amd.architecture(target)
    if architecture is None:
        raise UsageError(f"{target} is not in the table of AMD GPUs", f"known: {', '.join(f'{prefix}*' for prefix in amd.targets())}")
    return GpuInfo(
        ref=DeviceRef(name=target),
        vendor="amd",
        source="table",
        compute_capability=Reading(None, "an AMD GPU has an LLVM target instead"),
        architecture=Reading(architecture),
        formats=amd.formats(target),
        metrics={"target": Reading(target)},
    )


def _of_card(text: str) -> GpuInfo:
    from mpdoctor.gpu.names import match

    found = match(text)
    card = found.card
    size = found.memory_gib
    sizes = " or ".join(map(str, card.memory_gib))
    return GpuInfo(
        ref=DeviceRef(name=card.name),
        vendor=card.vendor,
        source="table",
        compute_capability=Reading(card.capability, None if card.capability else f"{card.vendor} GPUs have none"),
        architecture=Reading(card.architecture),
        formats=card.formats,
        metrics={
            **({"target": Reading[object](card.generation)} if card.vendor == "amd" else {}),
            "memory_total_bytes": Reading(size * 2**30 if size else None, None if size else f"sold with {sizes} GiB"),
        },
    )


def _present() -> tuple[GpuInfo, ...]:
    from mpdoctor.gpu.probe import probe

    return tuple(gpu for gpu in probe().gpus if gpu.source != "cpu")


def _identified(name: str, present: Sequence[GpuInfo]) -> GpuInfo:
    """The GPU of this machine with a UUID (as far as it is unique) or a PCI bus id."""
    wanted = name.lower()
    matching = [gpu for gpu in present if any(identity.lower().startswith(wanted) for identity in _uuids(gpu))] or [
        gpu for gpu in present if str(gpu.metric("pci_bus_id").value or "").lower().endswith(wanted)
    ]
    if len(matching) == 1:
        return matching[0]
    here = ", ".join(gpu.ref.uuid or str(gpu.ref) for gpu in present) or "none"
    what = "several GPUs here start with" if matching else "no GPU in this machine is"
    raise UsageError(f"{what} {name}", f"GPUs here: {here}")


def _uuids(gpu: GpuInfo) -> list[str]:
    """The UUID of a GPU, and those of its MIG devices."""
    slices = gpu.metric("mig_devices").value
    return [uuid for uuid in (gpu.ref.uuid, *(mig["uuid"] for mig in (slices if isinstance(slices, list) else []))) if uuid]
