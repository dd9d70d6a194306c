"""JUnit XML, for CI systems that show test results.

A finding that reaches the gate is a failed test; one below it is a passed test with its text as output. Inputs without findings are passed tests;
what was not looked at is a skipped test; a run that could not judge, and a failure inside mpdoctor, are errors.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

from mpdoctor.core.finding import Finding
from mpdoctor.core.gate import Outcome, gated
from mpdoctor.core.report import Report
from mpdoctor.report.characters import visible
from mpdoctor.report.places import logical_place, relative, span_of, worst_first
from mpdoctor.report.renderer import Renderer, RenderOptions

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, options: RenderOptions) -> str:
    """One suite per command."""
    cases = [_of_finding(finding, report, options) for finding in worst_first(report)]
    cases.append(_of_outcome(report))
    named = {span.file for finding in report.findings if (span := span_of(finding))}
    cases += [
        _case("no findings", relative(item.path))
        for item in report.inputs
        if report.command == "check" and item.path not in named and _judged(report)
    ]
    for skipped in report.skipped:
        case = _case(skipped.what, "not looked at")
        case.append(ET.Element("skipped", message=_text(skipped.why)))
        cases.append(case)
    for crash in report.crashes:
        cases.append(_failing("error", crash.what, "mpdoctor", crash.error, crash.traceback))

    def count(tag: str) -> str:
        return str(sum(case.find(tag) is not None for case in cases))

    counts: dict[str, Any] = {"tests": str(len(cases)), "failures": count("failure"), "errors": count("error"), "skipped": count("skipped")}
    suites = ET.Element("testsuites", name="mpdoctor", tests=counts["tests"], failures=counts["failures"], errors=counts["errors"])
    suite = ET.SubElement(suites, "testsuite", name=f"mpdoctor {report.command}", **counts)
    suite.extend(cases)
    ET.indent(suites)
    xml: bytes = ET.tostring(suites, encoding="us-ascii" if options.ascii else "utf-8", xml_declaration=True)
    return xml.decode("utf-8") + "\n"


def _judged(report: Report) -> bool:
    return report.outcome not in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED)


def _of_outcome(report: Report) -> ET.Element:
    """The command as a whole: what the exit code says."""
    if not _judged(report):
        return _failing("error", report.outcome.value, "mpdoctor", report.headline.text, "")
    if report.command == "replay" and not report.healthy:
        return _failing("failure", report.headline.cause or report.outcome.value, "mpdoctor", report.headline.text, "")
    return _case(report.outcome.value if report.command == "replay" else "judged", "mpdoctor")


def _of_finding(finding: Finding, report: Report, options: RenderOptions) -> ET.Element:
    span = span_of(finding)
    name = f"{finding.code} {finding.slug}" + (f" (line {span.line})" if span and span.line else "")
    group = relative(span.file) if span else logical_place(finding) or "mpdoctor"
    detail = [finding.message, *(evidence.text for evidence in finding.evidence)]
    if finding.remedy:
        detail += [finding.remedy.text, finding.remedy.patch or ""]
    text = "\n".join(part for part in detail if part)
    # A replay is judged by its outcome; what its detectors saw is evidence.
    if report.command != "replay" and gated([finding], options.fail_on):
        return _failing("failure", name, group, finding.message, text, kind=finding.severity.value)
    case = _case(name, group)
    ET.SubElement(case, "system-out").text = _text(f"{finding.severity.value}: {text}")
    return case


def _case(name: str, group: str) -> ET.Element:
    return ET.Element("testcase", name=_text(name), classname=_text(group))


def _failing(tag: str, name: str, group: str, message: str, text: str, kind: str = "failed") -> ET.Element:
    case = _case(name, group)
    result = ET.SubElement(case, tag, message=_text(message), type=kind)
    result.text = _text(text) or None
    return case


def _text(text: str) -> str:
    """`text` without what XML 1.0 cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))


RENDERER = Renderer(render=render, suffix=".xml")
