"""Sentences without anything that a terminal or a CI log would take for a command: the one place where a report's text is made safe to show.

A config's keys and values stand in the sentences about it, and may hold escape sequences and line breaks. Formats escape what is special to them.
"""

from __future__ import annotations

from dataclasses import replace

from mpdoctor.core.evidence import Evidence
from mpdoctor.core.finding import Finding, Remedy
from mpdoctor.core.report import Report
from mpdoctor.core.rule import Skipped
from mpdoctor.report.characters import one_line


def legible(report: Report) -> Report:
    """The report of a check with one line per sentence and control characters spelled out. Paths, keys and values of their own stay exact."""
    if report.command != "check":
        return report  # a replay quotes messages of several lines; its formats spell out the rest
    verdicts = [replace(verdict, evidence=_facts(verdict.evidence), remedy=_remedy(verdict.remedy)) for verdict in report.verdicts]
    return replace(
        report,
        headline=replace(report.headline, text=one_line(report.headline.text)),
        verdicts=tuple(verdicts),
        findings=tuple(_finding(finding) for finding in report.findings),
        skipped=tuple(Skipped(what=one_line(s.what), why=one_line(s.why), needless=s.needless) for s in report.skipped),
        notes=tuple(one_line(note) for note in report.notes),
    )


def _finding(finding: Finding) -> Finding:
    message = one_line(finding.message)
    evidence, remedy = _facts(finding.evidence), _remedy(finding.remedy)
    # Most findings hold nothing to spell out, and a folder may have thousands.
    unchanged = message == finding.message and evidence == finding.evidence and remedy == finding.remedy
    return finding if unchanged else replace(finding, message=message, evidence=evidence, remedy=remedy)


def _facts(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return tuple(fact if (text := one_line(fact.text)) == fact.text else replace(fact, text=text) for fact in evidence)


def _remedy(remedy: Remedy | None) -> Remedy | None:
    return remedy if remedy is None or (text := one_line(remedy.text)) == remedy.text else replace(remedy, text=text)
