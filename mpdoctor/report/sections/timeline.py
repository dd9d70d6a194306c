"""The failing step from input to optimizer, with the origin marked."""

from __future__ import annotations

import math

from mpdoctor.core.report import Report, TimelineEntry
from mpdoctor.report.numbers import dtype, number
from mpdoctor.report.places import place, source
from mpdoctor.report.sections.ink import Ink
from mpdoctor.report.sections.layout import Block

MOST_ROWS = 24
_AROUND = 3
_COLUMNS = (1, 9, None, 8, 10)
_INDENT = 14
"""Columns before the place: mark, phase and their gaps."""

MARKERS = {"origin": ("✗", "bold red"), "harm": ("!", "red"), "spread": ("·", "red")}


def timeline(report: Report, ink: Ink) -> list[Block]:
    """One row per place, in execution order; long timelines keep the rows around the marked ones."""
    entries = report.timeline
    if not entries or ink.quiet:
        return []
    steps = sorted({entry.site.step for entry in entries})
    name = f"Step {steps[0]}" if len(steps) == 1 else f"Steps {steps[0]} to {steps[-1]}"
    legend = "✗ begins here  ! does harm  · spreads" if any(entry.marker for entry in entries) else ""
    parts: list[Block] = [ink.title(f"{name}, from input to optimizer", legend)]
    previous = -1
    for index in _kept(entries):
        if index > previous + 1:
            parts.append(_left_out(index - previous - 1, ink))
        parts.extend(_entry(entries[index], ink))
        previous = index
    if previous < len(entries) - 1:
        parts.append(_left_out(len(entries) - 1 - previous, ink))
    return parts


def _entry(entry: TimelineEntry, ink: Ink) -> list[Block]:
    """A row, and below it over the full width what happened there."""
    mark, style = MARKERS.get(entry.marker, (" ", ""))
    row = ink.grid(*_COLUMNS)
    row.add_row(
        ink(mark, style), ink(entry.site.phase.value, "dim"), ink(place(entry.site), style), ink(dtype(entry.dtype), "dim"), ink(_amax(entry), style)
    )
    parts: list[Block] = [row]
    if entry.note:
        parts.append(ink.indented(ink(entry.note, "dim"), _INDENT))
    if entry.marker in ("origin", "harm") and entry.site.source:
        parts.append(ink.indented(ink(source(entry.site.source), "cyan"), _INDENT))
    return parts


def _left_out(count: int, ink: Ink) -> Block:
    return ink.indented(ink(f"… {count} more", "dim"), _INDENT)


def _kept(entries: tuple[TimelineEntry, ...]) -> list[int]:
    """Indices of the rows to show."""
    if len(entries) <= MOST_ROWS:
        return list(range(len(entries)))
    marked = [i for i, entry in enumerate(entries) if entry.marker in ("origin", "harm")]
    near = {j for i in marked for j in range(i - _AROUND, i + _AROUND + 1)}
    ends = {0, 1, len(entries) - 1}
    return sorted(i for i in near | ends if 0 <= i < len(entries))[:MOST_ROWS]


def _amax(entry: TimelineEntry) -> str:
    if entry.amax is None:
        return ""
    return f"max {number(entry.amax, 3)}" if math.isfinite(entry.amax) else str(entry.amax)
