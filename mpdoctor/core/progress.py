"""How long work tells of its progress, whoever shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the progress of long work. One task runs at a time; starting one ends the one before."""

    def start(self, task: str, total: int | None = None) -> None:
        """A task begins; `total` is its number of units, None when that is not known."""

    def advance(self, amount: int = 1) -> None:
        """`amount` more units of the task are done."""

    def note(self, text: str) -> None:
        """A short remark on what is being done right now."""


class Silent:
    """Shows nothing: the progress of library calls and of runs without a terminal."""

    def start(self, task: str, total: int | None = None) -> None:
        """See `Progress`."""

    def advance(self, amount: int = 1) -> None:
        """See `Progress`."""

    def note(self, text: str) -> None:
        """See `Progress`."""


SILENT = Silent()
