"""What the rules over training data judge: rows that do not fit the model, as plain data. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mpdoctor.core import rule
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.location import FileSpan


class FaultKind(StrEnum):
    """How a row does not fit the model."""

    LABEL = "label"
    """A label that the head has no output for."""
    TOKEN = "token"
    """A token id that the embedding has no row for."""
    TARGET = "target"
    """A target that is longer than the input that it is aligned with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFault:
    """A row that does not fit the model.

    Attributes:
        kind: how.
        row: its number in the data, from 0.
        line: its line in the file, from 1; None where the format has no lines.
        text: what is wrong, in words.
        step: the step that reads it, where the run's order is known.
    """

    kind: FaultKind
    row: int
    line: int | None
    text: str
    step: int | None = None

    @property
    def place(self) -> str:
        """`line 7`, or `row 6` where the format has no lines."""
        return f"line {self.line}" if self.line is not None else f"row {self.row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataEvidence:
    """A data file against the model that reads it.

    Attributes:
        path: the data file.
        rows: how many rows were looked at.
        faults: the rows that do not fit, in the file's order.
        replayed: numbers of the rows that the replayed steps read.
    """

    path: Path
    rows: int
    faults: tuple[RowFault, ...] = ()
    replayed: frozenset[int] = frozenset()

    def of(self, kind: FaultKind) -> tuple[RowFault, ...]:
        """The faults of one kind, those that the replayed steps read first."""
        return tuple(sorted((f for f in self.faults if f.kind is kind), key=lambda f: (f.row not in self.replayed, f.row)))


def judge_data(evidence: DataEvidence) -> rule.RuleRun:
    """Run all rules over training data."""
    return rule.run(rule.load("mpdoctor.replay.detectors.data"), evidence, lambda _evidence, _name: True)


def told(faults: Iterable[RowFault], path: Path) -> str:
    """The first fault with its place, and how many more there are."""
    first, *others = faults
    read = f", which step {first.step} reads" if first.step is not None else ""
    more = f"; {len(others)} more such row{'s' if len(others) > 1 else ''}" if others else ""
    return f"{path.name}, {first.place}: {first.text}{read}{more}"


def place_of(fault: RowFault, path: Path) -> FileSpan:
    """Where the row stands."""
    return FileSpan(file=str(path), line=fault.line)


def facts(faults: Iterable[RowFault], path: Path) -> tuple[Evidence, ...]:
    """The first rows, one fact each."""
    return tuple(Evidence(text=f"{f.place}: {f.text}", kind=EvidenceKind.TRACE, where=place_of(f, path)) for f in list(faults)[:5])
