"""The table of GPUs on sale (`gpus.csv`): name, generation, nominal memory, and where each row comes from.

The table only says which generation a name belongs to; what the generation can do is decided in `capability`, and a test holds the two together.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from mpdoctor.core.device import FormatSupport
from mpdoctor.core.record import dataclass
from mpdoctor.gpu.capability import amd, apple, intel, nvidia

PATH = Path(__file__).with_name("gpus.csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One row of the table.

    Attributes:
        name: marketing name without the maker's.
        vendor: `nvidia`, `amd`, `intel` or `apple`.
        architecture: name of the generation.
        generation: compute capability (`8.6`), LLVM target (`gfx942`), `xpu` or `mps`.
        memory_gib: nominal sizes on sale, in GiB.
        source: where the row comes from.
    """

    name: str
    vendor: str
    architecture: str
    generation: str
    memory_gib: tuple[int, ...]
    source: str

    @property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability; None for other makers."""
        if self.vendor != "nvidia":
            return None
        major, minor = self.generation.split(".")
        return int(major), int(minor)

    @property
    def formats(self) -> FormatSupport:
        """Support for each training format, by the rules of the maker's generation."""
        match self.vendor:
            case "nvidia":
                assert self.capability is not None
                return nvidia.formats(self.capability, self.name)
            case "amd":
                return amd.formats(self.generation)
            case "intel":
                return intel.formats(self.architecture)
        return apple.formats(self.name, None)


@cache
def rows() -> tuple[dict[str, str], ...]:
    """The rows as they are in the file."""
    with PATH.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


@cache
def cards() -> tuple[Card, ...]:
    """All GPUs of the table."""
    return tuple(
        Card(
            name=row["name"],
            vendor=row["vendor"],
            architecture=row["arch"],
            generation=row["cc"],
            memory_gib=tuple(int(size) for size in row["memory_gib"].split("|")),
            source=row["source"],
        )
        for row in rows()
    )
