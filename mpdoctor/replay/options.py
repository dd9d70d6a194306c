"""What `mpdoctor replay` was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpdoctor.core.device import GpuInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `mpdoctor replay` was asked for. See `mpdoctor replay --help`."""

    checkpoint: Path | None = None
    recipe: Path | None = None
    base_model: Path | None = None
    data: Path | None = None
    steps: int | None = None
    device: str = "auto"
    precision: str = "auto"
    experiments: str = "auto"
    trace: Path | None = None
    budget: float | None = None
    gpus: tuple[GpuInfo, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    trust_remote_code: bool = False
