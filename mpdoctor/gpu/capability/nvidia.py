"""NVIDIA: number formats by compute capability, and the cards that it does not tell apart.

Sources: NVIDIA's compute capability tables (developer.nvidia.com/cuda-gpus, /cuda-legacy-gpus); fp16 rates from the CUDA programming guide
(results per clock per SM); bf16 from 8.0 and fp8 from 8.9 from Transformer Engine's support matrix and torch's own tests (`SM80OrLater`,
`SM89OrLater`, MX formats `SM100OrLater`).
"""

from __future__ import annotations

import re

from mpdoctor.core.device import FormatSupport, Support

Capability = tuple[int, int]

NEWEST_KNOWN: Capability = (12, 1)

_ARCHITECTURES: dict[Capability, str] = {
    (3, 0): "Kepler", (3, 2): "Kepler", (3, 5): "Kepler", (3, 7): "Kepler",
    (5, 0): "Maxwell", (5, 2): "Maxwell", (5, 3): "Maxwell",
    (6, 0): "Pascal", (6, 1): "Pascal", (6, 2): "Pascal",
    (7, 0): "Volta", (7, 2): "Volta", (7, 5): "Turing",
    (8, 0): "Ampere", (8, 6): "Ampere", (8, 7): "Ampere", (8, 9): "Ada",
    (9, 0): "Hopper",
    (10, 0): "Blackwell", (10, 1): "Blackwell", (10, 3): "Blackwell", (11, 0): "Blackwell", (12, 0): "Blackwell", (12, 1): "Blackwell",
}  # fmt: skip

_TURING_WITHOUT_TENSOR_CORES = r"GTX 16|\bMX(450|550)\b|CMP 30HX|\bT(400E?|500|550|600|1000|1200|2000)\b"
_TU116_TU117 = ((0x2180, 0x21FF), (0x1F80, 0x1FFF))
"""PCI device ids of the two Turing chips that have no tensor cores (pci.ids agrees: every named id in these ranges is TU116 or TU117)."""

FP16_NAN = "fp16 units without tensor cores; cuDNN's fp16 convolutions give NaN on this chip (pytorch#58123, #77955)"


def architecture(capability: Capability) -> str | None:
    """Name of the architecture, or None for a compute capability that the table does not know."""
    return _ARCHITECTURES.get(capability)


def capabilities() -> tuple[Capability, ...]:
    """All compute capabilities of the table, oldest first."""
    return tuple(sorted(_ARCHITECTURES))


def known(capability: Capability) -> bool:
    """Whether the table has this compute capability; others are judged like their nearest known relative."""
    return capability in _ARCHITECTURES


def lacks_tensor_cores(capability: Capability, name: str = "", pci_device_id: int = 0) -> bool:
    """Whether this is a Turing card without tensor cores. GTX 16 and RTX 20 are both 7.5, so the name decides, then the PCI id.

    Args:
        capability: compute capability.
        name: marketing name; two GTX 16 cards are cut-down chips with another PCI id, so it is looked at first.
        pci_device_id: NVML's 32 bits, device id in the upper half; 0 where unknown.
    """
    if capability != (7, 5):
        return False
    chip = pci_device_id >> 16
    return bool(re.search(_TURING_WITHOUT_TENSOR_CORES, name)) or any(low <= chip <= high for low, high in _TU116_TU117)


def formats(capability: Capability, name: str = "", pci_device_id: int = 0) -> FormatSupport:
    """Support for each training format."""
    notes: list[str] = []
    if not known(capability):
        like = "like the newest known" if capability > NEWEST_KNOWN else "by its neighbours"
        notes.append(f"compute capability {capability[0]}.{capability[1]} is not in the table: judged {like}")
    fp16 = _fp16(capability, name, pci_device_id, notes)
    bf16 = _bf16(capability, notes)
    if capability >= (12, 0):
        notes.append(
            "fp8: per-tensor and current scaling; Transformer Engine has no MXFP8 on 12.x. "
            "NVFP4 there needs NVFP4BlockScaling(disable_rht=True, disable_stochastic_rounding=True)"
        )
    return FormatSupport(
        fp16=fp16,
        bf16=bf16,
        tf32=Support.TENSOR_CORES if capability >= (8, 0) else Support.NONE,
        fp8=Support.TENSOR_CORES if capability >= (8, 9) else Support.NONE,
        fp4=Support.TENSOR_CORES if capability >= (10, 0) else Support.NONE,
        notes=tuple(notes),
    )


def _fp16(capability: Capability, name: str, pci_device_id: int, notes: list[str]) -> Support:
    if lacks_tensor_cores(capability, name, pci_device_id):
        notes.append(f"fp16: {FP16_NAN}")
        return Support.STORAGE
    if capability >= (7, 0):
        return Support.TENSOR_CORES
    if capability in ((5, 3), (6, 0), (6, 2)):
        notes.append("fp16: twice fp32's rate, no tensor cores")
        return Support.NATIVE
    if capability == (6, 1):
        notes.append("fp16: arithmetic at 1/64 of fp32's rate; it saves memory only")
    return Support.STORAGE


def _bf16(capability: Capability, notes: list[str]) -> Support:
    if capability >= (8, 0):
        return Support.TENSOR_CORES
    if capability >= (7, 0):
        notes.append(
            "bf16: emulated through fp32, slower than fp32; torch.compile and cuDNN convolutions refuse it, although torch calls it supported"
        )
        return Support.EMULATED
    return Support.STORAGE if capability >= (5, 0) else Support.NONE
