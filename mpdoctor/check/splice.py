"""Edits of a text by place: what stands at a line and column becomes something else."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.core.finding import Edit


def splice(text: str, edits: Iterable[Edit]) -> tuple[str, list[Edit]]:
    """The text with the edits made that still find what they saw, and those edits. Of two that overlap the one further back is made.

    Args:
        text: lines ended by newlines alone.
        edits: places count lines and characters from 1; `new` may hold newlines.
    """
    lines = text.split("\n")
    made: list[Edit] = []
    limit = (len(lines) + 1, 0)  # where the edit behind begins
    for edit in sorted(set(edits), key=_place, reverse=True):
        line, column = _place(edit)
        if not 0 < line <= len(lines) or edit.new is None or (line, column + len(edit.old)) > limit:
            continue
        before = lines[line - 1]
        if not before[column - 1 :].startswith(edit.old) or column - 1 > len(before):
            continue
        lines[line - 1] = before[: column - 1] + edit.new + before[column - 1 + len(edit.old) :]
        limit = (line, column)
        made.append(edit)
    return "\n".join(lines), made


def _place(edit: Edit) -> tuple[int, int]:
    return edit.at.line or 0, edit.at.column or 0
