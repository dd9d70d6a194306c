"""Small repairs of a script's text: the edits, and how they look as a diff.

Each function gives the edits that make a change, or none where it cannot be made safely (the statement shares its line with others, the
expression spans lines, the script is a notebook, whose file holds JSON).
"""

from __future__ import annotations

import ast
import difflib

from mpdoctor.check.scripts.source import Source
from mpdoctor.check.splice import splice
from mpdoctor.core.finding import Edit
from mpdoctor.core.location import FileSpan

Edits = tuple[Edit, ...]


def insert_before(source: Source, statement: ast.stmt, text: str) -> Edits:
    """Put a line before a statement, indented like it."""
    indent = _indent(source, statement)
    return () if indent is None else _edit(source, statement.lineno, 1, "", f"{indent}{text}\n")


def insert_after(source: Source, statement: ast.stmt, text: str) -> Edits:
    """Put a line after a statement, indented like it."""
    indent = _indent(source, statement)
    last = statement.end_lineno or statement.lineno
    rest = source.lines[last - 1][source.column(last, statement.end_col_offset or 0) :].strip()
    if indent is None or (rest and not rest.startswith("#")):
        return ()
    return _edit(source, last, len(source.lines[last - 1]) + 1, "", f"\n{indent}{text}")


def rewrite(source: Source, node: ast.expr, text: str) -> Edits:
    """Replace an expression that stands on one line."""
    if node.end_lineno != node.lineno:
        return ()
    start, end = source.column(node.lineno, node.col_offset), source.column(node.lineno, node.end_col_offset or 0)
    return _edit(source, node.lineno, start + 1, source.lines[node.lineno - 1][start:end], text)


def together(*parts: Edits) -> Edits:
    """All of the changes, or none where one of them cannot be made: half a repair is none."""
    return tuple(edit for part in parts for edit in part) if all(parts) else ()


def diff(source: Source, edits: Edits) -> str | None:
    """The edits as a unified diff; None without edits."""
    after, made = splice(source.text, edits)
    if not made:
        return None
    lines = difflib.unified_diff(_lines(source.text), _lines(after), source.file, source.file)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _indent(source: Source, statement: ast.stmt) -> str | None:
    before = source.lines[statement.lineno - 1][: source.column(statement.lineno, statement.col_offset)]
    return before if not before.strip() else None


def _edit(source: Source, line: int, column: int, old: str, new: str) -> Edits:
    if source.place is not None:
        return ()
    return (Edit(at=FileSpan(file=source.file, line=line, column=column), old=old, new=new),)


def _lines(text: str) -> list[str]:
    """Lines with their ends; `str.splitlines` would split at form feeds too."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
