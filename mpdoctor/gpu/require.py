"""`--require bf16[:native]`: formats that a machine must have, as a gate for job scripts and CI."""

from __future__ import annotations

from collections.abc import Sequence

from mpdoctor.core.device import GpuInfo, Support
from mpdoctor.core.errors import UsageError
from mpdoctor.core.record import dataclass

FORMATS = ("fp16", "bf16", "tf32", "fp8", "fp4")
LEVELS = {"tensor-cores": 3, "native": 2, "emulated": 1}
_OFFERED = {Support.TENSOR_CORES: 3, Support.NATIVE: 2, Support.EMULATED: 1, Support.STORAGE: 0, Support.NONE: 0, Support.UNKNOWN: 0}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A format, and how it must be computed at least: `tensor-cores`, `native` (the default) or `emulated`."""

    format: str
    level: str

    def met_by(self, gpu: GpuInfo) -> bool:
        """Whether a device offers it. Unknown is not enough: a gate that cannot tell does not open."""
        return _OFFERED[gpu.formats.get(self.format)] >= LEVELS[self.level]

    def __str__(self) -> str:
        return self.format if self.level == "native" else f"{self.format}:{self.level}"


def parse(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """Requirements from `bf16`, `bf16:native`, `fp8,fp4:emulated`. Raises UsageError."""
    found = []
    for entry in (part.strip() for text in texts for part in text.split(",")):
        name, colon, level = entry.lower().partition(":")
        if name not in FORMATS:
            hint = f"choose from {', '.join(FORMATS)}, with :native (default), :emulated or :tensor-cores"
            raise UsageError(f"--require {entry!r}: unknown format {name!r}", hint)
        if colon and level not in LEVELS:
            raise UsageError(f"--require {entry!r}: unknown level {level!r}", f"choose from {', '.join(LEVELS)}")
        found.append(Requirement(name, level or "native"))
    return tuple(dict.fromkeys(found))
