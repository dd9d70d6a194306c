"""One observed fact, and where it was observed."""

from __future__ import annotations

from enum import StrEnum

from mpdoctor.core.location import Location
from mpdoctor.core.record import dataclass


class EvidenceKind(StrEnum):
    """Where a fact comes from."""

    CONFIG = "config"
    DEVICE = "device"
    CHECKPOINT = "checkpoint"
    HISTORY = "history"
    TRACE = "trace"
    EXPERIMENT = "experiment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A fact in one sentence that a user understands, with its numbers."""

    text: str
    kind: EvidenceKind
    where: Location | None = None

    def __str__(self) -> str:
        return self.text
