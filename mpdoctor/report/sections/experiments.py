"""The what-if runs: one change each, and what happened to the failure."""

from __future__ import annotations

from mpdoctor.core.report import ExperimentOutcome, Report
from mpdoctor.report.sections.ink import Ink
from mpdoctor.report.sections.layout import Block

OUTCOMES = {
    ExperimentOutcome.FAILURE_GONE: ("✓ failure gone", "bold green"),
    ExperimentOutcome.SAME_FAILURE: ("✗ same failure", "red"),
    ExperimentOutcome.OTHER_FAILURE: ("✗ other failure", "yellow"),
    ExperimentOutcome.NOT_RUN: ("– not run", "dim"),
}


def experiments(report: Report, ink: Ink) -> list[Block]:
    """One row per experiment, those that ran first."""
    if not report.experiments or ink.quiet:
        return []
    table = ink.grid(6, 15, None)
    for result in sorted(report.experiments, key=lambda r: r.outcome is ExperimentOutcome.NOT_RUN):
        words, style = OUTCOMES[result.outcome]
        took = f"  {result.seconds:.1f} s" if result.seconds is not None and result.seconds >= 0.1 else ""
        table.add_row(ink(result.id, "dim"), ink(words, style), ink.join((result.changes, "bold"), (took, "dim")))
        if result.detail:
            table.add_row("", "", ink(result.detail, "dim"))
    return [ink.title("What-if runs", "the same state and batches, one thing changed in each"), table]
