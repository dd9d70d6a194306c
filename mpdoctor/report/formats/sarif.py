"""SARIF 2.1.0, for code scanning (https://docs.oasis-open.org/sarif/sarif/v2.1.0/).

Results carry a fingerprint that survives edits elsewhere in the file, so that a finding is not reported as new after every change.
What was not looked at, and failures inside mpdoctor, are notifications of the invocation.
"""

from __future__ import annotations

from typing import Any

from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.location import FileSpan
from mpdoctor.core.report import Report
from mpdoctor.core.version import __version__
from mpdoctor.report.characters import visible
from mpdoctor.report.places import logical_place, span_of, uri, worst_first
from mpdoctor.report.renderer import Renderer, RenderOptions

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
PRECISION = {Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}
FINGERPRINT = "mpdoctor/v1"


def render(report: Report, options: RenderOptions) -> str:
    """A log with one run."""
    found = worst_first(report)
    codes = sorted({finding.code for finding in found})
    run = {
        "tool": {
            "driver": {
                "name": "mpdoctor",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(code, next(f for f in found if f.code == code), options) for code in codes],
            }
        },
        "automationDetails": {"id": f"mpdoctor/{report.command}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "artifacts": [{"location": _artifact(item.path), "roles": ["analysisTarget"]} for item in report.inputs],
        "results": [_result(finding, codes.index(finding.code)) for finding in found],
        "properties": {"outcome": report.outcome.value, "headline": visible(report.headline.text), "cause": report.headline.cause},
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return to_json(log, ascii_only=options.ascii) + "\n"


def _rule(code: str, example: Finding, options: RenderOptions) -> dict[str, Any]:
    page = options.rule_page(code)
    summary = page.summary if page else example.slug.replace("-", " ")
    markdown = page.markdown(f"{code} {example.slug}") if page else summary
    return {
        "id": code,
        "name": example.slug,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": (page.sections.get("What it looks for") if page else None) or summary},
        "help": {"text": markdown, "markdown": markdown},
        "defaultConfiguration": {"level": LEVELS[example.severity]},
        "properties": {"precision": PRECISION[example.confidence], "problem.severity": _problem_severity(example), "tags": ["mixed-precision"]},
    }


def _problem_severity(finding: Finding) -> str:
    """GitHub's words for the severity of a rule."""
    return {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}[finding.severity]


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    message = visible(finding.message)
    if finding.remedy:
        message += f"\n\n{visible(finding.remedy.text)}"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": LEVELS[finding.severity],
        "message": {"text": message or finding.slug},
        "locations": [location] if (location := _location(finding)) else [],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": {
            "confidence": finding.confidence.value,
            "cause": finding.cause,
            "evidence": [visible(evidence.text) for evidence in finding.evidence],
        },
    }
    if finding.related:
        result["relatedLocations"] = [{"id": i, "physicalLocation": _physical(span)} for i, span in enumerate(finding.related, start=1)]
    return result


def _location(finding: Finding) -> dict[str, Any]:
    span, logical = span_of(finding), logical_place(finding)
    location: dict[str, Any] = {}
    if span:
        location["physicalLocation"] = _physical(span)
    if logical:
        location["logicalLocations"] = [{"fullyQualifiedName": visible(logical)}]
    return location


def _physical(span: FileSpan) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(span.file)}
    if span.line:
        physical["region"] = {"startLine": span.line} | ({"startColumn": span.column} if span.column else {})
    return physical


def _artifact(path: str) -> dict[str, Any]:
    location = uri(path)
    return {"uri": location} if location.startswith("file:") else {"uri": location, "uriBaseId": "%SRCROOT%"}


def _invocation(report: Report) -> dict[str, Any]:
    notifications = [
        {"level": "error", "message": {"text": visible(f"{crash.what} failed inside mpdoctor: {crash.error}")}, "descriptor": {"id": "failed-inside"}}
        for crash in report.crashes
    ]
    judged = report.outcome not in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED)
    if not judged:
        text = visible(report.headline.text) or report.outcome.value
        notifications.append({"level": "error", "message": {"text": text}, "descriptor": {"id": report.outcome.value}})
    for skipped in report.skipped:
        text = visible(f"{skipped.what} was not looked at: {skipped.why}")
        notifications.append({"level": "note", "message": {"text": text}, "descriptor": {"id": "not-looked-at"}})
    return {"executionSuccessful": judged and not report.crashes, "toolExecutionNotifications": notifications}


RENDERER = Renderer(render=render, suffix=".sarif")
