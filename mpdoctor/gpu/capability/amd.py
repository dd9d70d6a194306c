"""AMD: number formats by LLVM target (`gfx942`).

Sources: ROCm's `reference/precision-support` and `reference/gpu-specs`; torch's tests for tf32 (gfx94, gfx95) and fp8 (gfx94, gfx95, gfx120);
LLVM's AMDGPUUsage for the WMMA instructions of RDNA3 and later.
"""

from __future__ import annotations

from mpdoctor.core.device import FormatSupport, Support

_TC, _NATIVE, _EMULATED, _NONE = Support.TENSOR_CORES, Support.NATIVE, Support.EMULATED, Support.NONE

FLUSHES = "fp16 and bf16 matrix instructions flush subnormals to zero (MI200): fp16 gradients below 6.1e-5 are lost inside products"
HALF_RATE = "bf16 matrix products run at half of fp16's rate"
FNUZ = "fp8 is FNUZ (e4m3fnuz, largest value 240, not 448): weights and scales of OCP fp8 do not carry over"

_BY_TARGET: tuple[tuple[str, str, FormatSupport], ...] = (
    # prefix, architecture, formats; the longest matching prefix wins
    ("gfx900", "GCN5", FormatSupport(fp16=_NATIVE, bf16=_EMULATED, tf32=_NONE, fp8=_NONE, fp4=_NONE)),
    ("gfx906", "GCN5", FormatSupport(fp16=_NATIVE, bf16=_EMULATED, tf32=_NONE, fp8=_NONE, fp4=_NONE)),
    ("gfx908", "CDNA", FormatSupport(fp16=_TC, bf16=_TC, tf32=_NONE, fp8=_NONE, fp4=_NONE, notes=(HALF_RATE,))),
    ("gfx90a", "CDNA2", FormatSupport(fp16=_TC, bf16=_TC, tf32=_NONE, fp8=_NONE, fp4=_NONE, notes=(FLUSHES,))),
    ("gfx94", "CDNA3", FormatSupport(fp16=_TC, bf16=_TC, tf32=_TC, fp8=_TC, fp4=_NONE, notes=(FNUZ,))),
    ("gfx95", "CDNA4", FormatSupport(fp16=_TC, bf16=_TC, tf32=_TC, fp8=_TC, fp4=_TC, notes=("fp8 is OCP, with MX formats",))),
    ("gfx101", "RDNA", FormatSupport(fp16=_NATIVE, bf16=_EMULATED, tf32=_NONE, fp8=_NONE, fp4=_NONE)),
    ("gfx103", "RDNA2", FormatSupport(fp16=_NATIVE, bf16=_EMULATED, tf32=_NONE, fp8=_NONE, fp4=_NONE)),
    ("gfx110", "RDNA3", FormatSupport(fp16=_TC, bf16=_TC, tf32=_NONE, fp8=_NONE, fp4=_NONE)),
    ("gfx115", "RDNA3.5", FormatSupport(fp16=_TC, bf16=_TC, tf32=_NONE, fp8=_NONE, fp4=_NONE)),
    ("gfx120", "RDNA4", FormatSupport(fp16=_TC, bf16=_TC, tf32=_NONE, fp8=_TC, fp4=_NONE)),
)  # fmt: skip


_NAMES = {
    0x66A1: "Instinct MI50", 0x66AF: "Radeon VII", 0x738C: "Instinct MI100", 0x738E: "Instinct MI100", 0x7408: "Instinct MI250X",
    0x740C: "Instinct MI250X/MI250", 0x740F: "Instinct MI210", 0x74A0: "Instinct MI300A", 0x74A1: "Instinct MI300X", 0x74A2: "Instinct MI308X",
    0x74A5: "Instinct MI325X",
    0x75A0: "Instinct MI350X", 0x75A3: "Instinct MI355X", 0x73BF: "Radeon RX 6800/6900 XT", 0x744C: "Radeon RX 7900", 0x7448: "Radeon Pro W7900",
    0x747E: "Radeon RX 7700/7800 XT", 0x7480: "Radeon RX 7600", 0x7550: "Radeon RX 9070", 0x7551: "Radeon AI PRO R9700", 0x7590: "Radeon RX 9060 XT",
}  # fmt: skip
"""Names by PCI device id (pci.ids), for drivers that tell none."""


def name(pci_device_id: int) -> str:
    """Marketing name, or what is known without one."""
    return f"AMD {_NAMES[pci_device_id]}" if pci_device_id in _NAMES else f"AMD GPU {pci_device_id:04x}"


def target(version: int) -> str | None:
    """`gfx942` for the kernel driver's `gfx_target_version` 90402: two decimal digits each for minor and stepping; the stepping prints as hex."""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}" if major else None


def targets() -> tuple[str, ...]:
    """Beginnings of all targets that the table has."""
    return tuple(row[0] for row in _BY_TARGET)


def clean(name: str) -> str:
    """The target without its feature flags (`gfx90a:sramecc+:xnack-`)."""
    return name.split(":")[0].strip().lower()


def architecture(name: str) -> str | None:
    """Name of the architecture of a target, or None for an unknown one."""
    row = _row(name)
    return row[1] if row else None


def formats(name: str) -> FormatSupport:
    """Support for each training format; unknown for a target that the table does not have."""
    row = _row(name)
    return row[2] if row else FormatSupport(notes=(f"{clean(name)} is not in the table: its formats are not known",))


def _row(name: str) -> tuple[str, str, FormatSupport] | None:
    matching = [row for row in _BY_TARGET if clean(name).startswith(row[0])]
    return max(matching, key=lambda row: len(row[0]), default=None)
