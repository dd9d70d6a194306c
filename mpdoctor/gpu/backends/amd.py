"""AMD GPUs: from the kernel driver's files; names and temperatures better from AMD SMI where it is installed.

The LLVM target is a line of the KFD node's `properties` (`gfx_target_version 90402` is gfx942). Error counters are those of the driver's RAS
folder (kernel documentation, gpu/amdgpu/ras).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpdoctor.core.device import FormatSupport, GpuInfo, Reading
from mpdoctor.core.location import DeviceRef
from mpdoctor.gpu.backends import sysfs
from mpdoctor.gpu.capability import amd

_NODES = "sys/class/kfd/kfd/topology/nodes"
_PCI = "sys/bus/pci/devices"
_DRM = "sys/class/drm"
_VENDOR = 0x1002


def read(root: Path = Path("/"), *, limit: float = 30.0, library: bool = True) -> tuple[GpuInfo, ...]:
    """All GPUs, in the order in which HIP counts them.

    Args:
        root: where `/sys` is looked for.
        limit: seconds for AMD SMI.
        library: whether to ask AMD SMI at all.
    """
    gpus = _compute_nodes(root) or _display_cards(root)
    if not gpus or not library:
        return gpus
    from mpdoctor.gpu.backends import amdsmi

    told = amdsmi.ask(limit)
    return tuple(_completed(gpu, told) for gpu in gpus)


def _compute_nodes(root: Path) -> tuple[GpuInfo, ...]:
    found: list[GpuInfo] = []
    for node in sysfs.folders(root / _NODES, "*"):
        properties = _pairs(sysfs.text(node / "properties").value or "")
        version = properties.get("gfx_target_version", 0)
        if not version or not properties.get("simd_count"):
            continue  # a CPU, or a node that this user may not read
        found.append(_gpu(root, _address(properties), amd.target(version), properties.get("device_id", 0), index=len(found)))
    return tuple(found)


def _display_cards(root: Path) -> tuple[GpuInfo, ...]:
    """Cards of the display driver, where there is no compute driver to tell the target."""
    found: list[GpuInfo] = []
    for card in sysfs.folders(root / _DRM, "card[0-9]*"):
        if "-" in card.name or sysfs.number(card / "device/vendor").value != _VENDOR:
            continue
        device = int(sysfs.number(card / "device/device").value or 0)
        slot = _uevent(sysfs.text(card / "device/uevent").value or "").get("PCI_SLOT_NAME")
        found.append(_gpu(root, slot, None, device, index=len(found), folder=card / "device"))
    return tuple(found)


def _gpu(root: Path, address: str | None, target: str | None, device_id: int, *, index: int, folder: Path | None = None) -> GpuInfo:
    folder = folder or root / _PCI / (address or "unknown")
    product = sysfs.text(folder / "product_name").value
    identity = sysfs.text(folder / "unique_id").value
    architecture = amd.architecture(target) if target else None
    no_target = "the compute driver (/dev/kfd) does not show this GPU"
    return GpuInfo(
        ref=DeviceRef(name=product or amd.name(device_id), index=index, uuid=f"GPU-{identity}" if identity else None),
        vendor="amd",
        source="sysfs",
        compute_capability=Reading(None, "an AMD GPU has an LLVM target instead"),
        architecture=Reading(architecture) if architecture else Reading(None, no_target if target is None else "not in the table"),
        formats=amd.formats(target) if target else FormatSupport(notes=(f"its formats are not known: {no_target}",)),
        metrics={
            "state": Reading("ok"),
            "target": Reading(target) if target else Reading(None, no_target),
            "pci_bus_id": Reading(address) if address else Reading(None, "not shown by this driver"),
            "memory_total_bytes": sysfs.number(folder / "mem_info_vram_total"),
            "memory_used_bytes": sysfs.number(folder / "mem_info_vram_used"),
            "utilization_percent": sysfs.number(folder / "gpu_busy_percent"),
            **_sensors(folder),
            **_errors(folder / "ras"),
        },
    )


def _sensors(folder: Path) -> dict[str, Reading[Any]]:
    hwmon = next(iter(sysfs.folders(folder / "hwmon", "hwmon*")), folder / "hwmon")
    labels = {sysfs.text(path).value: path.name.removesuffix("_label") for path in sysfs.folders(hwmon, "temp*_label")}
    hottest = labels.get("junction") or labels.get("edge") or "temp1"
    return {
        "temperature_celsius": sysfs.number(hwmon / f"{hottest}_input", 1000),
        "temperature_slowdown_celsius": sysfs.number(hwmon / f"{hottest}_crit", 1000),
        "memory_temperature_celsius": sysfs.number(hwmon / f"{labels.get('mem', 'temp3')}_input", 1000),
        "power_watts": sysfs.first(sysfs.number(hwmon / "power1_average", 1_000_000), sysfs.number(hwmon / "power1_input", 1_000_000)),
        "power_limit_watts": sysfs.number(hwmon / "power1_cap", 1_000_000),
    }


def _errors(ras: Path) -> dict[str, Reading[Any]]:
    """Counters since the driver was loaded: `ue: N`, `ce: N` in one file per block; retired pages (R), pending (P), failed (F)."""
    memory = _counts(sysfs.text(ras / "umc_err_count"))
    if memory is None:
        reason = sysfs.text(ras / "umc_err_count").reason or "no counts in umc_err_count"
        names = ("ecc_enabled", "ecc_corrected_volatile", "ecc_uncorrected_volatile", "retired_pages_double_bit", "retired_pages_pending")
        return {name: Reading(None, reason) for name in names}
    blocks = [_counts(sysfs.text(path)) for path in sysfs.folders(ras, "*_err_count")]
    pages = [line.split(":")[-1].strip() for line in (sysfs.text(ras / "gpu_vram_bad_pages").value or "").splitlines() if line.count(":") == 2]
    return {
        "ecc_enabled": Reading(True),
        "ecc_uncorrected_volatile": Reading(sum(counts["ue"] for counts in blocks if counts)),
        "ecc_corrected_volatile": Reading(sum(counts["ce"] for counts in blocks if counts)),
        "ecc_dram_uncorrected_volatile": Reading(memory["ue"]),
        "retired_pages_double_bit": Reading(len(pages)),
        "retired_pages_pending": Reading("P" in pages),
    }


def _counts(content: Reading[str]) -> dict[str, int] | None:
    pairs = dict(line.replace(" ", "").partition(":")[::2] for line in (content.value or "").splitlines() if ":" in line)
    if not pairs.get("ue", "").isdigit() or not pairs.get("ce", "").isdigit():
        return None
    return {"ue": int(pairs["ue"]), "ce": int(pairs["ce"])}


def _pairs(content: str) -> dict[str, int]:
    """Lines `name number`."""
    parts = (line.split() for line in content.splitlines())
    return {pair[0]: int(pair[1]) for pair in parts if len(pair) == 2 and pair[1].isdigit()}


def _uevent(content: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in content.splitlines() if "=" in line)


def _address(properties: Mapping[str, int]) -> str | None:
    """PCI address from KFD's location id (bus, device and function packed into 16 bits) and domain."""
    if "location_id" not in properties:
        return None
    location = properties["location_id"]
    return f"{properties.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def _completed(gpu: GpuInfo, told: Mapping[str, Mapping[str, Any]]) -> GpuInfo:
    """A GPU with what AMD SMI adds: a better name, and metrics that `/sys` does not have."""
    facts = told.get(str(gpu.metric("pci_bus_id").value))
    if not facts:
        return gpu
    added = {name: Reading(value) for name, value in facts.items() if name != "name" and not gpu.metric(name)}
    target = amd.clean(str(facts["target"])) if "target" in added else None
    named = replace(gpu, ref=replace(gpu.ref, name=facts.get("name") or gpu.name), source="amdsmi", metrics={**gpu.metrics, **added})
    if target is None:
        return named
    architecture = amd.architecture(target)
    return replace(named, formats=amd.formats(target), architecture=Reading(architecture, None if architecture else "not in the table"))
