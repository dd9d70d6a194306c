"""The answer: what is wrong, how sure that is, and what to change."""

from __future__ import annotations

from mpdoctor.core.report import NonFinite, Report
from mpdoctor.report.answer import Tone, leading_verdict, reason, seen, status
from mpdoctor.report.numbers import dtype
from mpdoctor.report.places import place, ranges, source
from mpdoctor.report.sections.ink import STANDINGS, Ink
from mpdoctor.report.sections.layout import Block, Stack, Text

_BADGES = {
    Tone.GOOD: ("✓", "bold white on green"),
    Tone.BAD: ("✗", "bold white on red"),
    Tone.CAUTION: ("!", "bold black on yellow"),
    Tone.UNKNOWN: ("?", "bold black on yellow"),
}


def headline(report: Report, ink: Ink) -> list[Block]:
    """The badge with the cause, then what was seen, where it began, why, and what to change."""
    rows = _rows(report, ink)
    parts: list[Block] = [_badge(report, ink)]
    if rows and not ink.quiet:
        parts.append(Text())
    if len(rows) == 1 and not rows[0][0]:
        return [*parts, ink.indented(rows[0][1], 1)]
    table = ink.grid(7, None)
    for label, content in rows:
        table.add_row(ink(label, "dim"), content)
    return [*parts, ink.indented(table, 1)] if rows else parts


def _badge(report: Report, ink: Ink) -> Text:
    tone, words = status(report)
    mark, style = _BADGES[tone]
    line = ink.join((f" {mark} {words.upper() if report.command == 'replay' or tone is Tone.UNKNOWN else words} ", style))
    if verdict := leading_verdict(report):
        standing, standing_style = STANDINGS[verdict.standing]
        line.append_text(ink.join("  ", (verdict.cause, "bold"), "  ", (standing[2:], standing_style)))
    return line


def _rows(report: Report, ink: Ink) -> list[tuple[str, Block]]:
    verdict, why = leading_verdict(report), reason(report)
    rows: list[tuple[str, Block]] = []
    if why and not verdict:
        rows.append(("", ink(why)))
    if symptoms := seen(report):
        rows.append(("seen", ink("\n".join(symptoms))))
    if origin := report.first_nonfinite:
        rows.append(("first", _origin(origin, ink)))
    if why and verdict:
        rows.append(("why", ink(why)))
    if origin and origin.why not in why:
        rows.append(("", ink(origin.why)))
    if verdict and (remedy := verdict.remedy):
        rows.append(("change", Stack(ink(remedy.text, "bold"), *(ink.patch(remedy.patch) if remedy.patch else ()))))
    return rows


def _origin(origin: NonFinite, ink: Ink) -> Text:
    text = ink.join(
        (origin.kind, "bold red"), " in ", (place(origin.site), "bold"), f", {origin.site.phase}, step {origin.site.step}, {dtype(origin.dtype)}"
    )
    if origin.site.source:
        text.append_text(ink.join("\n", (source(origin.site.source), "cyan")))
    if origin.rows:
        text.append_text(ink(f"\nrow{'s' if len(origin.rows) > 1 else ''} {ranges(origin.rows)} of the batch"))
    if origin.hurts_at:
        where = f" ({source(origin.hurts_at.source)})" if origin.hurts_at.source else ""
        text.append_text(ink(f"\ndoes harm at {place(origin.hurts_at)}, {origin.hurts_at.phase}{where}"))
    return text
