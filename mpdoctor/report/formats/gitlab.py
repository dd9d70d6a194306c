"""GitLab code quality report (the subset of Code Climate's format that GitLab reads)."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.report import Report
from mpdoctor.report.characters import one_line
from mpdoctor.report.places import relative, span_of, worst_first
from mpdoctor.report.renderer import Renderer, RenderOptions

SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(report: Report, options: RenderOptions) -> str:
    """A list of issues. A run that could not judge is an issue too: an empty list would read as clean."""
    fallback = relative(report.inputs[0].path) if report.inputs else "mpdoctor"
    issues = []
    seen: Counter[str] = Counter()
    for finding in worst_first(report):
        seen[finding.fingerprint] += 1
        issues.append(_issue(finding, fallback, seen[finding.fingerprint]))
    if report.outcome in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED):
        issues.append(_entry(report.outcome.value, report.headline.text or report.outcome.value, "info", fallback, 1, report.outcome.value))
    issues += [_entry("mpdoctor-bug", f"{c.what}: {c.error}", "info", fallback, 1, f"bug {c.what}") for c in report.crashes]
    return to_json(issues, ascii_only=options.ascii) + "\n"


def _issue(finding: Finding, fallback: str, occurrence: int) -> dict[str, Any]:
    span = span_of(finding)
    severity = SEVERITIES[finding.severity]
    if severity == "major" and finding.confidence is Confidence.LOW:
        severity = "minor"
    text = finding.message if finding.remedy is None else f"{finding.message}. {finding.remedy.text}"
    identity = finding.fingerprint if occurrence == 1 else f"{finding.fingerprint} {occurrence}"
    return _entry(
        finding.code, f"{finding.code} {finding.slug}: {text}", severity, span.file if span else fallback, (span and span.line) or 1, identity
    )


def _entry(check: str, description: str, severity: str, path: str, line: int, identity: str) -> dict[str, Any]:
    return {
        "check_name": check,
        "description": one_line(description),
        "severity": severity,
        # GitLab drops issues whose fingerprint it has seen in the same file.
        "fingerprint": hashlib.sha256(f"mpdoctor {identity}".encode("utf-8", "backslashreplace")).hexdigest()[:32],
        "location": {"path": relative(path), "lines": {"begin": line}},
    }


RENDERER = Renderer(render=render, suffix=".gitlab.json")
