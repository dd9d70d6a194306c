"""What else a reader must know: measured numbers, what was not looked at, how it was run, notes, and mpdoctor's own failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpdoctor.core.report import Report
from mpdoctor.report import answer
from mpdoctor.report.numbers import plain, words
from mpdoctor.report.places import shown_path
from mpdoctor.report.sections.ink import Ink
from mpdoctor.report.sections.layout import Block


def measurements(report: Report, ink: Ink) -> list[Block]:
    """Numbers that the replay measured, by name."""
    if not report.measurements or ink.quiet:
        return []
    from mpdoctor.report.measured import in_words

    lines = in_words(report)
    return [ink.title("Measured"), _pairs(dict(lines), ink)] if lines else []


def not_looked_at(report: Report, ink: Ink) -> list[Block]:
    """Everything that did not run, by reason: "clean" and "not looked at" never print alike."""
    reasons, rest = answer.not_looked_at(report), answer.not_needed_in_short(report)
    if not reasons and (ink.quiet or not rest):
        return []
    if ink.quiet:
        return [ink(f"{sum(map(len, reasons.values()))} not looked at; without --quiet: which, and why", "dim")]
    table = ink.grid(1, None)
    for why, what in reasons.items():
        table.add_row(ink("–", "dim"), ink.join(", ".join(what), (f": {why}", "dim")))
    if rest:
        table.add_row(ink("·", "dim"), ink(rest, "dim"))
    return [ink.title("Not looked at"), table]


def crashes(report: Report, ink: Ink) -> list[Block]:
    """Rules and experiments that failed by a bug of mpdoctor; the rest of the report stands."""
    if not report.crashes:
        return []
    table = ink.grid(1, None)
    for crash in report.crashes:
        table.add_row(ink("!", "bold red"), ink(f"{crash.what}: {crash.error}"))
    return [ink.title("Failed inside mpdoctor", "a bug; the rest of the report stands. --debug shows where"), table]


def notes(report: Report, ink: Ink) -> list[Block]:
    """Plain sentences for the reader."""
    if not report.notes or ink.quiet:
        return []
    table = ink.grid(1, None)
    for note in report.notes:
        table.add_row(ink("·", "dim"), ink(note))
    return [ink.title("Notes"), table]


def circumstances(report: Report, ink: Ink) -> list[Block]:
    """Inputs, device, versions, and everything that was emulated."""
    if ink.quiet or not (report.inputs or report.environment):
        return []
    facts: dict[str, Any] = {}
    for item in report.inputs:
        facts.setdefault(item.role, []).append(shown_path(item.path))
    return [ink.title("How it was run"), _pairs(facts | dict(report.environment), ink)]


def _pairs(facts: Mapping[str, Any], ink: Ink) -> Block:
    names = {name: ink.plain(words(name)) for name in facts}
    table = ink.grid(max(8, min(24, max(map(len, names.values()), default=8))), None)
    for name, value in facts.items():
        if value not in (None, [], {}, ()):
            table.add_row(ink(names[name], "dim"), ink(plain(value)))
    return table
