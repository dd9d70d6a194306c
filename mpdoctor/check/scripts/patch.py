"""Small repairs of a script's text, as unified diffs."""

from __future__ import annotations

import ast

from mpdoctor.check.scripts.source import Source

_AROUND = 3
"""Lines of context, as `diff -u` prints."""


def insert_before(source: Source, statement: ast.stmt, text: str) -> str | None:
    """A diff that puts a line before a statement, indented like it; None where the statement shares its line with others."""
    indent = _indent(source, statement)
    return None if indent is None else _diff(source, statement.lineno, 0, [indent + text])


def insert_after(source: Source, statement: ast.stmt, text: str) -> str | None:
    """A diff that puts a line after a statement, indented like it; None where the statement shares its lines with others."""
    indent = _indent(source, statement)
    last = statement.end_lineno or statement.lineno
    rest = source.lines[last - 1][source.column(last, statement.end_col_offset or 0) :].strip()
    return None if indent is None or (rest and not rest.startswith("#")) else _diff(source, last + 1, 0, [indent + text])


def rewrite(source: Source, node: ast.expr, text: str) -> str | None:
    """A diff that replaces an expression; None for one that spans lines."""
    if node.end_lineno != node.lineno:
        return None
    line = source.lines[node.lineno - 1]
    start, end = source.column(node.lineno, node.col_offset), source.column(node.lineno, node.end_col_offset or 0)
    return _diff(source, node.lineno, 1, [line[:start] + text + line[end:]])


def _indent(source: Source, statement: ast.stmt) -> str | None:
    before = source.lines[statement.lineno - 1][: source.column(statement.lineno, statement.col_offset)]
    return before if not before.strip() else None


def _diff(source: Source, first: int, removed: int, added: list[str]) -> str | None:
    """A diff of one hunk: `removed` lines from line `first` on are replaced by `added`. None for a notebook, whose file holds JSON."""
    if source.place is not None:
        return None
    lines = list(source.lines)
    ended = not lines[-1]  # the text ends with a line end
    if ended:
        lines.pop()
    before = lines[max(0, first - 1 - _AROUND) : first - 1]
    after = lines[first - 1 + removed : first - 1 + removed + _AROUND]
    old = [*before, *lines[first - 1 : first - 1 + removed], *after]
    start = first - len(before)
    body = [f" {line}" for line in before]
    body += [f"-{line}" for line in lines[first - 1 : first - 1 + removed]] + [f"+{line}" for line in added] + [f" {line}" for line in after]
    if not ended and first - 1 + removed + len(after) >= len(lines):
        if not after:
            return None  # the last line has no line end: a diff would have to change it too
        body.append("\\ No newline at end of file")
    head = [f"--- {source.file}", f"+++ {source.file}", f"@@ -{start},{len(old)} +{start},{len(before) + len(added) + len(after)} @@"]
    return "\n".join([*head, *body, ""])
