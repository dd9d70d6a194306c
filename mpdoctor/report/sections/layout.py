"""Styled text, wrapped and set side by side: what the reports need of rich, at a tenth of what loading rich costs at every start.

A block knows how to fill a width with lines; `ansi` writes a line with the terminal's sixteen colours. Blocks can be given to rich, too.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

Piece = tuple[str, str]
"""Characters, and their style in rich's words (`bold red on green`)."""
Line = list[Piece]

_WORD = re.compile(r"\s*\S+\s*")
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4"}


class Block(ABC):
    """Anything that fills a part of the page."""

    @abstractmethod
    def lines(self, width: int) -> Iterator[Line]:
        """Its lines at a width in terminal columns, none of them wider."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rich's protocol, for displays that change (`gpu --watch`)."""
        from rich.text import Text as RichText

        for line in self.lines(options.max_width):
            yield RichText.assemble(*line)


class Text(Block):
    """Text in one or more styles, wrapped between words; what is longer than a line is cut."""

    def __init__(self, *pieces: Piece) -> None:
        self.pieces = [piece for piece in pieces if piece[0]]

    def append_text(self, other: Text) -> None:
        """Put another text at the end of this one."""
        self.pieces += other.pieces

    @property
    def plain(self) -> str:
        """The characters alone."""
        return "".join(text for text, _ in self.pieces)

    def lines(self, width: int) -> Iterator[Line]:
        """See `Block`."""
        start, plain = 0, self.plain.expandtabs(8) if any("\t" in text for text, _ in self.pieces) else self.plain
        pieces = self.pieces if len(plain) == sum(len(text) for text, _ in self.pieces) else [(plain, self.pieces[0][1])]
        for row in plain.split("\n"):
            wraps = columns(row) > width
            for first, last in pairwise([0, *(_breaks(row, width) if wraps else ()), len(row)]):
                end = first + len(row[first:last].rstrip()) if wraps else last
                yield _between(pieces, start + first, start + end)
            start += len(row) + 1


class Stack(Block):
    """Blocks below each other."""

    def __init__(self, *blocks: Block) -> None:
        self.blocks = blocks

    def lines(self, width: int) -> Iterator[Line]:
        """See `Block`."""
        for block in self.blocks:
            yield from block.lines(width)


class Indented(Block):
    """A block some columns to the right."""

    def __init__(self, block: Block, by: int) -> None:
        self.block, self.by = block, by

    def lines(self, width: int) -> Iterator[Line]:
        """See `Block`."""
        for line in self.block.lines(max(1, width - self.by)):
            yield [(" " * self.by, ""), *line]


class Grid(Block):
    """Rows of cells in columns of fixed width, one of which (width None) takes the rest. What is too long for a cell goes on below."""

    def __init__(self, *widths: int | None, gap: int = 2, right: Collection[int] = ()) -> None:
        """An empty grid with `gap` columns of space between its cells; those of the columns `right` end at the right."""
        self.widths, self.gap, self.right = widths, gap, right
        self.rows: list[tuple[Block, ...]] = []

    @classmethod
    def fitted(cls, rows: Sequence[Sequence[Text]], *, gap: int, right: Collection[int] = ()) -> Grid:
        """A grid whose columns are as wide as their widest cell."""
        grid = cls(*(max(columns(cell.plain) for cell in column) for column in zip(*rows, strict=True)), gap=gap, right=right)
        for row in rows:
            grid.add_row(*row)
        return grid

    def add_row(self, *cells: Block | str) -> None:
        """One more row. Missing cells at its end are empty."""
        blocks = [Text((cell, "")) if isinstance(cell, str) else cell for cell in cells]
        self.rows.append((*blocks, *[Text()] * (len(self.widths) - len(cells))))

    def lines(self, width: int) -> Iterator[Line]:
        """See `Block`."""
        widths = self._widths(width)
        for row in self.rows:
            cells = [list(cell.lines(room)) for cell, room in zip(row, widths, strict=True)]
            for index in range(max(map(len, cells))):
                line: Line = []
                for number, (lines, room) in enumerate(zip(cells, widths, strict=True)):
                    cell = lines[index] if index < len(lines) else []
                    space = (" " * (room - sum(columns(text) for text, _ in cell)), "")
                    line += [(" " * self.gap, "")] if number else []
                    line += [space, *cell] if number in self.right else [*cell, space]
                yield line

    def _widths(self, width: int) -> list[int]:
        """The columns' widths on a page of this width; the widest give way where it is too narrow."""
        room = width - self.gap * (len(self.widths) - 1)
        widths = [max(1, room - sum(fixed or 0 for fixed in self.widths)) if fixed is None else max(1, fixed) for fixed in self.widths]
        while sum(widths) > room and max(widths) > 1:
            widths[widths.index(max(widths))] -= 1
        return widths


def columns(text: str) -> int:
    """Columns that a text takes on a terminal: two for the wide characters of East Asia, none for combining marks."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def ansi(line: Line) -> str:
    """A line with the escape sequences of its styles."""
    return "".join(f"\x1b[{_codes(style)}m{text}\x1b[0m" if style and text else text for text, style in line)


def _codes(style: str) -> str:
    codes, ground = [], 30
    for word in style.split():
        if word == "on":
            ground = 40
        else:
            codes.append(_ATTRIBUTES.get(word) or str(ground + _COLOURS.index(word)))
    return ";".join(codes)


def _breaks(row: str, width: int) -> Iterator[int]:
    """Where a row goes on in the next line: before a word that does not fit, and inside one that fits into no line."""
    used = 0
    for match in _WORD.finditer(row):
        word, start = match[0], match.start()
        size = columns(word.rstrip())
        if used + size > width and size > width:
            for offset in _cuts(word, width):
                if start + offset:
                    yield start + offset
                used, cut = 0, offset
            used = columns(word[cut:])
        elif used + size > width and start:
            yield start
            used = columns(word)
        else:
            used += columns(word)


def _cuts(word: str, width: int) -> Iterator[int]:
    """Where the parts of a word that is longer than a line begin."""
    yield 0
    used = 0
    for index, character in enumerate(word.rstrip()):
        size = columns(character)
        if used + size > width:
            yield index
            used = 0
        used += size


def _between(pieces: list[Piece], first: int, last: int) -> Line:
    """The part of a text from one character to another, with its styles."""
    line, at = [], 0
    for text, style in pieces:
        part = text[max(0, first - at) : max(0, last - at)]
        if part:
            line.append((part, style))
        at += len(text)
    return line
