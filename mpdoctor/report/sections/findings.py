"""Findings: for files grouped by file and line, for a replay by the place in the step."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from mpdoctor.core.finding import Confidence, Finding
from mpdoctor.core.location import FileSpan, TensorSite
from mpdoctor.core.report import Report
from mpdoctor.report.numbers import count
from mpdoctor.report.sections.headline import place
from mpdoctor.report.sections.ink import SEVERITIES, Ink


def findings(report: Report, ink: Ink) -> list[RenderableType]:
    """All findings; with `quiet` one line each."""
    if not report.findings:
        return []
    if report.command == "replay":
        return [] if ink.quiet else _in_order(report.findings, ink)
    parts: list[RenderableType] = []
    for group, members in _by_file(report.findings).items():
        if parts and not ink.quiet:
            parts.append(Text(""))
        parts.append(ink(group or "This machine", "bold underline"))
        for finding in members:
            parts.extend(_finding(finding, ink))
    return parts


def _by_file(found: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by file (empty for those without one), worst first inside a line, files in the order of their first finding."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.location.file if isinstance(finding.location, FileSpan) else "", []).append(finding)
    for members in groups.values():
        members.sort(key=lambda f: (_line(f) or 0, -f.severity.rank, f.code))
    return groups


def _in_order(found: tuple[Finding, ...], ink: Ink) -> list[RenderableType]:
    """What the detectors saw, worst first."""
    parts: list[RenderableType] = [ink.title("What was seen", count(len(found), "finding"))]
    for finding in sorted(found, key=lambda f: (-f.severity.rank, -f.confidence.rank, f.code)):
        parts.extend(_finding(finding, ink))
    return parts


def _finding(finding: Finding, ink: Ink) -> list[RenderableType]:
    table = ink.grid(5, 7, None)
    table.add_row(ink(str(_line(finding) or ""), "cyan"), ink(finding.severity.value, SEVERITIES[finding.severity]), ink(finding.message))
    if ink.quiet:
        return [table]
    table.add_row("", "", ink(_traits(finding), "dim"))
    for evidence in finding.evidence:
        table.add_row("", "", ink(f"· {evidence.text}", "dim"))
    for span in finding.related:
        table.add_row("", "", ink(f"see also {span}{f' ({span.key})' if span.key else ''}", "dim"))
    if finding.remedy:
        table.add_row("", "", ink.join(("→ ", "green"), finding.remedy.text))
        for line in ink.patch(finding.remedy.patch) if finding.remedy.patch else ():
            table.add_row("", "", ink.indented(line))
    return [table]


def _traits(finding: Finding) -> str:
    parts = [f"{finding.code} {finding.slug}"]
    match finding.location:
        case FileSpan(key=key) if key:
            parts.append(key)
        case TensorSite() as site:
            parts.append(f"step {site.step}, {site.phase}: {place(site)}" + (f", {site.source}" if site.source else ""))
        case None | FileSpan():
            pass
        case device:
            parts.append(str(device))
    if finding.confidence is not Confidence.HIGH:
        parts.append(f"{finding.confidence.value} confidence")
    return " · ".join(parts)


def _line(finding: Finding) -> int | None:
    return finding.location.line if isinstance(finding.location, FileSpan) else None
