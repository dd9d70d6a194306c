"""Jupyter notebooks: code cells joined to one script, magics taken out, each line mapped back to its cell."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Any

from mpdoctor.check.scripts.source import Source, parse, split_lines
from mpdoctor.core.errors import NothingToJudge, UnreadableInput
from mpdoctor.core.location import FileSpan
from mpdoctor.core.record import dataclass
from mpdoctor.core.rule import Skipped

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_CHARACTER = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|.", re.DOTALL)
"""One character inside a JSON string."""
_MAGIC = re.compile(r"\s*(?:[%!?]|\?\?|[\w.]+\?{1,2}\s*$)")
_ASSIGNED_MAGIC = re.compile(r"(?P<target>\s*[\w., ]+=\s*)[!%].*")
_PYTHON_CELL_MAGICS = ("time", "timeit", "capture", "prun", "python", "python3", "pypy", "snakeviz", "memit", "mprun")
"""Cell magics whose body is Python in the notebook's own interpreter, or near enough."""


@dataclass(frozen=True, slots=True)
class _Cell:
    number: int
    """Place among all cells, from 1, as a reader counts them."""
    lines: tuple[str, ...]


class CellPlaces:
    """Maps a line of the joined text to a line of the notebook's JSON text, on demand (most notebooks have no finding)."""

    def __init__(self, file: str, text: str, rows: list[tuple[int, int]]) -> None:
        self.file, self.text, self.rows = file, text, rows

    def __call__(self, line: int) -> FileSpan:
        """The place of a line of the joined text in the notebook's file."""
        number, row = self.rows[line - 1]
        strings = self._strings.get(number, [])
        at = bisect_right([first for first, _ in strings], row) - 1
        physical = bisect_right(self._starts, strings[at][1]) if at >= 0 else None
        return FileSpan(file=self.file, line=physical, key=f"cell {number}")

    def exact(self, line: int, column: int) -> tuple[int, int]:
        """Line and column in the notebook's file of a character of the joined text (both from 1)."""
        number, row = self.rows[line - 1]
        strings = self._strings.get(number, [])
        at = bisect_right([first for first, _ in strings], row) - 1
        if at < 0:
            return 1, 1
        first, begin = strings[at]
        offset, breaks = begin + 1, row - first
        for match in _CHARACTER.finditer(self.text, offset):
            if not breaks and column <= 1:
                break
            breaks, column = (breaks - 1, column) if breaks and match[0] == "\\n" else (breaks, column if breaks else column - 1)
            offset = match.end()
        physical = bisect_right(self._starts, offset)
        return physical, offset - self._starts[physical - 1] + 1

    def row(self, line: int) -> str:
        """A line as the notebook's reader knows it."""
        number, row = self.rows[line - 1]
        return f"cell {number}, line {row}"

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]

    @cached_property
    def _strings(self) -> dict[int, list[tuple[int, int]]]:
        """For each cell its source's JSON strings: the cell's row at which each begins, and its offset in the file."""
        found: dict[int, list[tuple[int, int]]] = {}
        path: list[str | int] = []  # for each open bracket: the current key of an object, or the index in a list
        value_next = False  # after a colon
        number, row = 0, 1
        for match in _TOKEN.finditer(self.text):
            token = match[0]
            if token in ("{", "["):
                if token == "{" and _names(path) in _CELLS:
                    number, row = number + 1, 1
                path.append("" if token == "{" else 0)
                value_next = False
            elif token in ("}", "]"):
                path = path[:-1]
            elif token == ",":
                value_next = False
                if path and isinstance(path[-1], int):
                    path[-1] += 1
            elif token == ":":
                value_next = True
            elif token.startswith('"'):
                if path and isinstance(path[-1], str) and not value_next:
                    path[-1] = token[1:-1]
                elif _names(path) in _SOURCES:
                    found.setdefault(number, []).append((row, match.start()))
                    row += str(json.loads(token)).count("\n")
        return found


def _names(path: list[str | int]) -> tuple[str, ...]:
    return tuple(part for part in path if isinstance(part, str))


_CELLS = (("cells",), ("worksheets", "cells"))
_SOURCES = (("cells", "source"), ("worksheets", "cells", "input"))


def read_notebook(file: str, text: str) -> Source:
    """A notebook's source: its code cells in order.

    A cell that is not Python (a shell cell, a draft that does not parse) is left out and listed as
    skipped. Raises UnreadableInput for what is no notebook, NothingToJudge for one in another language.
    """
    cells = _cells(file, text)
    rows: list[tuple[int, int]] = []
    joined: list[str] = []
    skipped: list[Skipped] = []
    for cell in cells:
        lines, why = _python(file, cell)
        if why:
            skipped.append(Skipped(what=f"{file} cell {cell.number}", why=why))
        joined += lines
        rows += [(cell.number, row) for row in range(1, len(lines) + 1)]
    if cells and len(skipped) == len(cells):
        raise UnreadableInput(f"{file}: none of its {len(cells)} code cells is valid Python 3: {skipped[0].why}")
    python = "\n".join(joined)
    rows = rows or [(1, 1)]
    tree = parse(file, python, notebook=True)
    return Source(file=file, text=python, tree=tree, lines=split_lines(python), place=CellPlaces(file, text, rows), skipped=tuple(skipped))


def _cells(file: str, text: str) -> list[_Cell]:
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise UnreadableInput(f"{file}:{error.lineno}:{error.colno}: not a notebook: not valid JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise UnreadableInput(f"{file}: not a notebook: {error}") from None
    found = document.get("cells") if isinstance(document, dict) else None
    if found is None and isinstance(document, dict) and isinstance(document.get("worksheets"), list):  # nbformat 3
        sheets = [sheet.get("cells") for sheet in document["worksheets"] if isinstance(sheet, dict)]
        found = [cell for cells in sheets if isinstance(cells, list) for cell in cells]
    if not isinstance(found, list):
        raise UnreadableInput(f"{file}: not a notebook: it has no list of cells", "Save it again from Jupyter.")
    language = _language(document.get("metadata"))
    if language and "python" not in language.lower():
        raise NothingToJudge(f"{file}: a notebook in {language}, not in Python")
    cells = []
    for number, cell in enumerate(found, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        code = "".join(part for part in source if isinstance(part, str)) if isinstance(source, list) else str(source or "")
        cells.append(_Cell(number, split_lines(code)))
    return cells


def _language(metadata: Any) -> str:
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(part, dict) and isinstance(part.get(key), str):
            return str(part[key])
    return ""


def _python(file: str, cell: _Cell) -> tuple[list[str], str | None]:
    """A cell's lines with everything that is not Python blanked, and why the whole cell was, if it was."""
    lines = list(cell.lines)
    blank = ["" for _ in lines]
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return blank, None
    if lines[first].lstrip().startswith("%%"):
        words = lines[first].lstrip().lstrip("%").split()
        name = words[0] if words else ""
        if name not in _PYTHON_CELL_MAGICS and not (name in ("writefile", "file") and words[-1].endswith(".py")):
            return blank, f"a %%{name} cell, not Python"
        lines[first] = ""
    problem = _syntax(file, lines)
    if problem is None:
        return lines, None
    # A line that starts with % may also be a continued expression, so lines are only taken out once the cell does not parse as it is.
    continued = False
    for index, line in enumerate(lines):
        if continued:
            lines[index] = ""
        elif assigned := _ASSIGNED_MAGIC.fullmatch(line):
            lines[index] = assigned["target"] + "None"
        elif _MAGIC.match(line):
            lines[index] = line[: len(line) - len(line.lstrip())] + "pass"
        else:
            continue
        continued = line.rstrip().endswith("\\")
    problem = _syntax(file, lines)
    return (lines, None) if problem is None else (blank, problem)


def _syntax(file: str, lines: list[str]) -> str | None:
    try:
        parse(file, "\n".join(lines), notebook=True)
    except UnreadableInput as error:
        return error.message.removeprefix(f"{file}:")
    return None
