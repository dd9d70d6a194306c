"""The CPU: name and instruction set, from `/proc/cpuinfo` or macOS's `sysctl`."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.location import DeviceRef
from mpdoctor.gpu.backends import sysctl
from mpdoctor.gpu.capability import cpu as capability

_ENOUGH = 32768
"""Bytes of `/proc/cpuinfo` that hold the first processor; the file repeats it for every core."""

_ARM_PARTS = {"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2"}


def read(root: Path = Path("/")) -> GpuInfo:
    """The CPU as a device that training can run on. `root` is where `/proc` is looked for."""
    if facts := sysctl.facts(root):
        name = facts.get("machdep.cpu.brand_string", "unknown CPU")
        return _device(name, _mac_flags(facts), int(facts["hw.memsize"]) if facts.get("hw.memsize", "").isdigit() else None)
    try:
        with (root / "proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            text = file.read(_ENOUGH)
    except OSError as error:
        reason = error.strerror or str(error)
        return GpuInfo(ref=DeviceRef(name="unknown CPU"), vendor="unknown", source="cpu", architecture=Reading(None, reason))
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    name = fields.get("model name") or _ARM_PARTS.get(fields.get("CPU part", ""), "") or f"CPU part {fields.get('CPU part', 'unknown')}"
    return _device(name, set(flags), None)


def _device(name: str, flags: set[str], memory: int | None) -> GpuInfo:
    lowered = name.lower()
    vendor = next((v for v in ("intel", "amd", "apple") if v in lowered), "arm" if flags & {"asimd", "neon"} or "neoverse" in lowered else "unknown")
    metrics: dict[str, Reading[object]] = {"flags": Reading(sorted(flags & capability.TELLING))}
    if memory:
        metrics["system_memory_bytes"] = Reading(memory)
    return GpuInfo(
        ref=DeviceRef(name=name),
        vendor=vendor,
        source="cpu",
        compute_capability=Reading(None, "a CPU has none"),
        architecture=Reading(None, "not read"),
        formats=capability.formats(flags),
        metrics=metrics,
    )


def _mac_flags(facts: dict[str, str]) -> set[str]:
    """Flags under the names that Linux has for them."""
    names = {
        "hw.optional.arm.FEAT_BF16": "bf16",
        "hw.optional.arm.FEAT_FP16": "asimdhp",
        "hw.optional.avx2_0": "avx2",
        "hw.optional.avx512f": "avx512f",
    }
    return {flag for key, flag in names.items() if facts.get(key) == "1"}
