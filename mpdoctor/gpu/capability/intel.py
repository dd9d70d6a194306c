"""Intel: number formats by GPU family, families by PCI device id.

Sources: pci.ids for the ids; oneDNN (bf16 through XMX on Arc and Data Center GPU Max) and torch.xpu's device properties for the formats.
"""

from __future__ import annotations

from mpdoctor.core.device import FormatSupport, Support

_TC, _NONE = Support.TENSOR_CORES, Support.NONE

_FAMILIES: dict[str, FormatSupport] = {
    "Xe-HPG": FormatSupport(fp16=_TC, bf16=_TC, tf32=_NONE, fp8=_NONE, fp4=_NONE),
    "Xe-HPC": FormatSupport(fp16=_TC, bf16=_TC, tf32=_TC, fp8=_NONE, fp4=_NONE),
    "Xe2": FormatSupport(fp16=_TC, bf16=_TC, tf32=_TC, fp8=_NONE, fp4=_NONE),
}

_RANGES = (
    (0x0B69, 0x0B6E, "Xe-HPC"), (0x0BD0, 0x0BDB, "Xe-HPC"),
    (0x4F80, 0x4F88, "Xe-HPG"), (0x5690, 0x56C2, "Xe-HPG"),
    (0xE202, 0xE223, "Xe2"),
)  # fmt: skip

_NAMES = {
    0x0B69: "Data Center GPU Max 1450", 0x0B6E: "Data Center GPU Max 1100C", 0x0BD4: "Data Center GPU Max 1550VG", 0x0BD5: "Data Center GPU Max 1550",
    0x0BD6: "Data Center GPU Max 1550", 0x0BD7: "Data Center GPU Max 1350", 0x0BD8: "Data Center GPU Max 1350", 0x0BD9: "Data Center GPU Max 1100",
    0x0BDA: "Data Center GPU Max 1100", 0x0BDB: "Data Center GPU Max 1100", 0x5690: "Arc A770M", 0x5691: "Arc A730M", 0x5692: "Arc A550M",
    0x5693: "Arc A370M", 0x5694: "Arc A350M", 0x56A0: "Arc A770", 0x56A1: "Arc A750", 0x56A2: "Arc A580", 0x56A5: "Arc A380", 0x56A6: "Arc A310",
    0x56B1: "Arc Pro A40/A50", 0x56B3: "Arc Pro A60", 0x56C0: "Data Center GPU Flex 170", 0x56C1: "Data Center GPU Flex 140",
    0xE20B: "Arc B580", 0xE20C: "Arc B570", 0xE211: "Arc Pro B60", 0xE212: "Arc Pro B50", 0xE222: "Arc Pro B65", 0xE223: "Arc Pro B70",
}  # fmt: skip


def family(pci_device_id: int) -> str | None:
    """Family of a discrete GPU; None for integrated graphics and for ids that the table does not have."""
    return next((name for low, high, name in _RANGES if low <= pci_device_id <= high), None)


def name(pci_device_id: int) -> str:
    """Marketing name, or what is known without one."""
    return f"Intel {_NAMES[pci_device_id]}" if pci_device_id in _NAMES else f"Intel graphics {pci_device_id:04x}"


def formats(family_name: str | None) -> FormatSupport:
    """Support for each training format."""
    if family_name in _FAMILIES:
        return _FAMILIES[family_name]
    return FormatSupport(notes=("integrated or unknown Intel graphics: ask torch, `torch.xpu.is_bf16_supported(including_emulation=False)`",))
