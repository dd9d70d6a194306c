"""Intel GPUs, from the display drivers' files (`i915`, `xe`)."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.location import DeviceRef
from mpdoctor.gpu.backends import sysfs
from mpdoctor.gpu.capability import intel

_VENDOR = 0x8086


def read(root: Path = Path("/")) -> tuple[GpuInfo, ...]:
    """All GPUs, discrete ones and integrated graphics. `root` is where `/sys` is looked for."""
    found: list[GpuInfo] = []
    for card in sysfs.folders(root / "sys/class/drm", "card[0-9]*"):
        if "-" in card.name or sysfs.number(card / "device/vendor").value != _VENDOR:
            continue
        found.append(_gpu(card, len(found)))
    return tuple(found)


def _gpu(card: Path, index: int) -> GpuInfo:
    folder = card / "device"
    device_id = int(sysfs.number(folder / "device").value or 0)
    family = intel.family(device_id)
    uevent = dict(line.split("=", 1) for line in (sysfs.text(folder / "uevent").value or "").splitlines() if "=" in line)
    hwmon = next(iter(sysfs.folders(folder / "hwmon", "hwmon*")), folder / "hwmon")
    address = uevent.get("PCI_SLOT_NAME")
    return GpuInfo(
        ref=DeviceRef(name=intel.name(device_id), index=index),
        vendor="intel",
        source="sysfs",
        compute_capability=Reading(None, "Intel GPUs have none"),
        architecture=Reading(family) if family else Reading(None, "integrated, or not in the table"),
        formats=intel.formats(family),
        metrics={
            "state": Reading("ok"),
            "integrated": Reading(family is None),
            "pci_bus_id": Reading(address) if address else Reading(None, "not shown by this driver"),
            "driver": Reading(uevent["DRIVER"]) if "DRIVER" in uevent else Reading(None, "not shown by this driver"),
            "memory_total_bytes": sysfs.first(
                sysfs.number(card / "lmem_total_bytes"),
                sysfs.number(folder / "tile0/physical_vram_size_bytes"),
            ),
            "temperature_celsius": sysfs.first(sysfs.number(hwmon / "temp2_input", 1000), sysfs.number(hwmon / "temp1_input", 1000)),
            "power_limit_watts": sysfs.number(hwmon / "power1_max", 1_000_000),
            "ecc_enabled": Reading(None, "not shown by this driver"),
        },
    )
