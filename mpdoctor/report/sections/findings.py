"""Findings: for files grouped by file and line, for a replay by the place in the step."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.core.finding import Confidence, Finding, Remedy
from mpdoctor.core.location import FileSpan, TensorSite
from mpdoctor.core.report import Report
from mpdoctor.report.numbers import count
from mpdoctor.report.places import place, source
from mpdoctor.report.sections.ink import SEVERITIES, Ink
from mpdoctor.report.sections.layout import Block, Grid, Text


def findings(report: Report, ink: Ink) -> list[Block]:
    """All findings; with `quiet` one line each."""
    if report.command == "replay":
        return _of_replay(report, ink)
    parts: list[Block] = []
    for file, members in _by_file(report.findings).items():
        if parts and not ink.quiet:
            parts.append(Text())
        parts.append(ink(ink.name(file) if file else "This machine", "bold underline"))
        width = max(len(_line(finding)) for finding in members)
        for finding in members:
            table = ink.grid(width, 7, None) if width else ink.grid(7, None)
            _add(table, [ink(_line(finding).rjust(width), "cyan")] if width else [], finding, finding.remedy, ink)
            parts.append(table)
    return parts


def _of_replay(report: Report, ink: Ink) -> list[Block]:
    """What the detectors saw, worst first. A remedy that the checklist's entry already has is not repeated."""
    if ink.quiet or not report.findings:
        return []
    told = {verdict.remedy for verdict in report.verdicts}
    table = ink.grid(7, None)
    for finding in sorted(report.findings, key=lambda f: (-f.severity.rank, -f.confidence.rank, f.code)):
        _add(table, [], finding, None if finding.remedy in told else finding.remedy, ink)
    return [ink.title("What the detectors saw", count(len(report.findings), "finding")), table]


def _by_file(found: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by file (empty for those without one) in the order of the lines; files in the order of their first finding."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.location.file if isinstance(finding.location, FileSpan) else "", []).append(finding)
    for members in groups.values():
        members.sort(key=lambda f: (int(_line(f) or 0), -f.severity.rank, f.code))
    return groups


def _add(table: Grid, before: list[Text], finding: Finding, remedy: Remedy | None, ink: Ink) -> None:
    """Rows of one finding: severity and message, then its code and place, its evidence, and what to change."""
    table.add_row(*before, ink(finding.severity.value, SEVERITIES[finding.severity]), ink(finding.message))
    if ink.quiet:
        return
    below: list[Block] = [ink(_traits(finding, ink), "dim")]
    below += [ink(f"· {evidence.text}", "dim") for evidence in finding.evidence if evidence.text != finding.message]
    below += [ink(f"see also {ink.name(source(span))}{f' ({ink.name(span.key)})' if span.key else ''}", "dim") for span in finding.related]
    if remedy:
        below.append(ink.join(("→ ", "green"), remedy.text))
        below += [ink.indented(line) for line in (ink.patch(remedy.patch) if remedy.patch else ())]
    for item in below:
        table.add_row(*["" for _ in before], "", item)


def _traits(finding: Finding, ink: Ink) -> str:
    parts = [f"{finding.code} {finding.slug}"]
    match finding.location:
        case FileSpan(key=key):
            parts += [key] if key else []
        case TensorSite() as site:
            parts.append(f"step {site.step}, {site.phase}: {place(site)}" + (f", {source(site.source)}" if site.source else ""))
        case None:
            pass
        case device:
            parts.append(str(device))
    if finding.confidence is not Confidence.HIGH:
        parts.append(f"{finding.confidence.value} confidence")
    return ink.name(" · ".join(parts))


def _line(finding: Finding) -> str:
    return str(finding.location.line or "") if isinstance(finding.location, FileSpan) else ""
