"""The numbered checklist: every cause with its standing, and the facts that the standing rests on."""

from __future__ import annotations

from mpdoctor.core.cause import Standing, Verdict
from mpdoctor.core.report import Report
from mpdoctor.report.sections.ink import STANDINGS, Ink
from mpdoctor.report.sections.layout import Block

MOST_FACTS = 3
"""Facts shown for one cause; the JSON report has all."""


def checklist(report: Report, ink: Ink) -> list[Block]:
    """One entry per cause, in the checklist's order."""
    if not report.verdicts:
        return []
    table = ink.grid(2, 11, None)
    for number, verdict in enumerate(report.verdicts, start=1):
        words, style = STANDINGS[verdict.standing]
        leads = verdict.cause == report.headline.cause
        table.add_row(ink(f"{number:>2}", "dim"), ink(words, style), ink(verdict.cause, "bold" if leads else ""))
        for fact in _facts(verdict, leads=leads, quiet=ink.quiet):
            table.add_row("", "", ink(fact, "dim" if verdict.standing in (Standing.RULED_OUT, Standing.UNTESTED) else ""))
    return [ink.title("Checklist"), table]


def _facts(verdict: Verdict, *, leads: bool, quiet: bool) -> list[str]:
    """The first fact of an entry; more of it for the one that the headline names."""
    texts = list(dict.fromkeys(evidence.text for evidence in verdict.evidence))
    most = 1 if quiet or not leads else MOST_FACTS
    if leads and not quiet and len(texts) > most:
        return [*texts[:most], f"and {len(texts) - most} more, in the JSON report"]
    return texts[:most]
