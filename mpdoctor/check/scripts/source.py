"""A script's Python text, parsed within bounds, and the way back from its lines to the user's file."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Protocol

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.location import FileSpan
from mpdoctor.core.record import dataclass
from mpdoctor.core.rule import Skipped

MAX_CHARACTERS = 512 << 10
"""Longest Python text that is parsed. The largest training script seen (a library's trainer) has 236,000 characters; time is bounded to seconds."""

_NEWLINE = re.compile(r"\r\n|\r|\n")


class Places(Protocol):
    """Where the lines of a joined text come from."""

    def __call__(self, line: int) -> FileSpan:
        """The place in the user's file of a line (from 1)."""
        ...

    def row(self, line: int) -> str:
        """The line as the file's reader knows it (`cell 3, line 2`)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Parsed Python and where it came from.

    Attributes:
        file: path as the user gave it.
        text: the Python text that was parsed; for a notebook the joined code cells.
        tree: its syntax tree.
        lines: the text's lines, without line ends.
        place: maps a line of `text` (from 1) to the user's file; None where they are the same.
        skipped: parts of the file that were not looked at, with the reason.
    """

    file: str
    text: str
    tree: ast.Module
    lines: tuple[str, ...]
    place: Places | None = None
    skipped: tuple[Skipped, ...] = ()

    def span(self, node: ast.expr | ast.stmt) -> FileSpan:
        """Where a node stands in the user's file; columns count characters from 1."""
        column = self.column(node.lineno, node.col_offset) + 1
        if self.place is None:
            return FileSpan(file=self.file, line=node.lineno, column=column)
        there = self.place(node.lineno)
        return FileSpan(file=self.file, line=there.line, key=there.key, column=(there.column or 0) + column)

    def column(self, line: int, offset: int) -> int:
        """Index of a character in a line, from the parser's offset in UTF-8 bytes."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """A node's text as written, on one line."""
        last = node.end_lineno or node.lineno
        start, end = self.column(node.lineno, node.col_offset), self.column(last, node.end_col_offset or 0)
        if last == node.lineno:
            return self.lines[last - 1][start:end]
        parts = [self.lines[node.lineno - 1][start:], *self.lines[node.lineno : last - 1], self.lines[last - 1][:end]]
        return " ".join(part.strip() for part in parts)


def split_lines(text: str) -> tuple[str, ...]:
    """Lines as Python's tokenizer counts them (`str.splitlines` also splits at form feeds and at Unicode's separators)."""
    return tuple(_NEWLINE.split(text) if "\r" in text else text.split("\n"))


def parse(file: str, text: str, *, notebook: bool = False) -> ast.Module:
    """The syntax tree of a Python text. Nothing is compiled or executed.

    Raises UnreadableInput, naming line and column, for text that is not Python 3, and for text that is
    too long or too deeply nested to be parsed in bounded time and memory.
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableInput(
            f"{file}: {len(text):,} characters of Python, more than the {MAX_CHARACTERS:,} that are parsed",
            "Name the training script itself; generated code is not judged.",
        )
    if "\0" in text:
        raise UnreadableInput(f"{file}:{text.count(chr(10), 0, text.index(chr(0))) + 1}: binary (a zero byte), not a Python script")
    flags = ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if notebook else 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the user's string is not our output
            tree = compile(text, file.replace("\0", ""), "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        where = f"{file}:{error.lineno or 1}:{error.offset or 1}"
        raise UnreadableInput(f"{where}: not valid Python 3: {error.msg}", "Fix the syntax, or leave the file out.") from None
    except (RecursionError, MemoryError):
        raise too_deep(file) from None
    except ValueError as error:  # lone surrogates, integers with thousands of digits
        raise UnreadableInput(f"{file}: not valid Python 3: {error}") from None
    assert isinstance(tree, ast.Module)
    return tree


def too_deep(file: str) -> UnreadableInput:
    """The refusal of code whose expressions nest beyond the interpreter's limits."""
    hint = "Name the training script itself; generated code is not judged."
    return UnreadableInput(f"{file}: its expressions are nested too deeply to be judged", hint)


def read_script(file: str, text: str) -> Source:
    """A `.py` file's source."""
    text = text.removeprefix("\ufeff")
    return Source(file=file, text=text, tree=parse(file, text), lines=split_lines(text))
