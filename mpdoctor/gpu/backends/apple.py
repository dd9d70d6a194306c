"""The GPU of a Mac. It has no error counters; what it computes in follows from chip and macOS."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.core.device import GpuInfo, Reading
from mpdoctor.core.location import DeviceRef
from mpdoctor.gpu.backends import sysctl
from mpdoctor.gpu.capability import apple


def read(root: Path = Path("/")) -> tuple[GpuInfo, ...]:
    """The GPU, or none when this is no Mac."""
    facts = sysctl.facts(root)
    chip = facts.get("machdep.cpu.brand_string", "")
    if not chip:
        return ()
    version = facts.get("kern.osproductversion", "")
    macos = tuple(int(part) for part in version.split(".") if part.isdigit()) or None
    memory = facts.get("hw.memsize", "")
    silicon = chip.startswith("Apple")
    return (
        GpuInfo(
            ref=DeviceRef(name=f"{chip} GPU" if silicon else "Mac GPU (Intel Mac)", index=0),
            vendor="apple",
            source="sysctl",
            compute_capability=Reading(None, "Apple GPUs have none"),
            architecture=Reading("Apple GPU") if silicon else Reading(None, "not told by macOS"),
            formats=apple.formats(chip, macos),
            metrics={
                "state": Reading("ok"),
                "macos": Reading(version) if version else Reading(None, "not told by macOS"),
                "memory_total_bytes": Reading(None, "the GPU shares the system's memory"),
                "system_memory_bytes": Reading(int(memory)) if memory.isdigit() else Reading(None, "not told by macOS"),
                "ecc_enabled": Reading(None, "macOS shows no error counters"),
            },
        ),
    )
