"""What a syntax has to offer, and the choice of syntax for a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from mpdoctor.check.sources.node import Document


class Source:
    """A syntax.

    Attributes:
        suffixes: file names that it reads.
        parse: text and path to documents; raises UnreadableInput with file, line and column.
        sniff: whether a text without a telling name looks like it.
    """

    __slots__ = ("parse", "sniff", "suffixes")

    def __init__(
        self, *, suffixes: tuple[str, ...], parse: Callable[[str, str], list[Document]], sniff: Callable[[str], bool] = lambda text: False
    ) -> None:
        self.suffixes, self.parse, self.sniff = suffixes, parse, sniff


def suffix_of(path: str) -> str:
    """The suffix that tells the syntax, lower case."""
    return PurePath(path).suffix.lower()
