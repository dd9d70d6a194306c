"""The failing step from input to optimizer, with the origin marked."""

from __future__ import annotations

from rich.console import RenderableType

from mpdoctor.core.report import Report, TimelineEntry
from mpdoctor.report.numbers import dtype, number
from mpdoctor.report.sections.headline import place
from mpdoctor.report.sections.ink import Ink

MOST_ROWS = 24
_AROUND = 3

MARKERS = {"origin": ("✗", "bold red"), "harm": ("!", "red"), "spread": ("·", "red")}


def timeline(report: Report, ink: Ink) -> list[RenderableType]:
    """One row per place, in execution order; long timelines keep the rows around the marked ones."""
    entries = report.timeline
    if not entries or ink.quiet:
        return []
    table = ink.grid(1, 9, None, 8, 10)
    kept = _kept(entries)
    previous = -1
    for index in kept:
        if index > previous + 1:
            table.add_row("", "", ink(f"… {index - previous - 1} more", "dim"), "", "")
        previous = index
        entry = entries[index]
        mark, style = MARKERS.get(entry.marker, (" ", ""))
        table.add_row(
            ink(mark, style),
            ink(entry.site.phase.value, "dim"),
            ink(place(entry.site), style),
            ink(dtype(entry.dtype), "dim"),
            ink(_amax(entry), style),
        )
        detail = [text for text in (entry.note, str(entry.site.source) if entry.marker and entry.site.source else "") if text]
        for text in detail:
            table.add_row("", "", ink(text, "cyan" if text == str(entry.site.source) else "dim"), "", "")
    if previous < len(entries) - 1:
        table.add_row("", "", ink(f"… {len(entries) - 1 - previous} more", "dim"), "", "")
    steps = sorted({entry.site.step for entry in entries})
    name = f"Step {steps[0]}" if len(steps) == 1 else f"Steps {steps[0]} to {steps[-1]}"
    legend = "✗ first bad value   ! where it does harm   · it spreads" if any(entry.marker for entry in entries) else ""
    return [ink.title(f"{name}, from input to optimizer", legend), table]


def _kept(entries: tuple[TimelineEntry, ...]) -> list[int]:
    """Indices of the rows to show."""
    if len(entries) <= MOST_ROWS:
        return list(range(len(entries)))
    marked = [i for i, entry in enumerate(entries) if entry.marker in ("origin", "harm")]
    near = {j for i in marked for j in range(i - _AROUND, i + _AROUND + 1)}
    ends = {0, 1, len(entries) - 1}
    kept = sorted(i for i in near | ends if 0 <= i < len(entries))
    return kept[:MOST_ROWS]


def _amax(entry: TimelineEntry) -> str:
    return "" if entry.amax is None else f"max {number(entry.amax, 3)}"
