"""Annotations for GitHub Actions (workflow commands on stdout).

GitHub shows ten annotations per level and step and drops the rest without a word; so the ten worst are printed, and a plain line says how many
there are in all.
"""

from __future__ import annotations

from collections import Counter

from mpdoctor.core.finding import Finding, Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.report import Report
from mpdoctor.report.characters import one_line, to_ascii, visible
from mpdoctor.report.numbers import count
from mpdoctor.report.places import relative, span_of, worst_first
from mpdoctor.report.renderer import Renderer, RenderOptions

MOST_PER_LEVEL = 10
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, options: RenderOptions) -> str:
    """One annotation per line, then a summary in plain words."""
    lines: list[str] = []
    if report.outcome in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED):
        lines.append(_command("warning", {"title": f"mpdoctor: {report.outcome.value}"}, report.headline.text))
    elif report.command == "replay" and not report.healthy:
        cause = f": {report.headline.cause} ({report.headline.standing})" if report.headline.cause else ""
        lines.append(_command("error", {"title": f"mpdoctor: {report.outcome.value}{cause}"}, report.headline.text))
    lines += [_command("error", {"title": "mpdoctor has a bug"}, f"{crash.what}: {crash.error}") for crash in report.crashes]

    shown = Counter(line.split(" ", 1)[0] for line in lines)
    left_out: Counter[str] = Counter()
    for finding in worst_first(report):
        level = LEVELS[finding.severity]
        if shown[f"::{level}"] >= MOST_PER_LEVEL:
            left_out[level] += 1
            continue
        shown[f"::{level}"] += 1
        lines.append(_annotation(finding, level))
    lines.append(f"mpdoctor {report.command}: {one_line(report.headline.text) or report.outcome.value}")
    if left_out:
        lines.append(f"mpdoctor: {' and '.join(count(n, level) for level, n in left_out.items())} more, beyond the ten per level that GitHub shows")
    text = "\n".join(lines) + "\n"
    return to_ascii(text) if options.ascii else text


def _annotation(finding: Finding, level: str) -> str:
    properties: dict[str, str] = {}
    if span := span_of(finding):
        properties["file"] = relative(span.file)
        if span.line:
            properties["line"] = str(span.line)
        if span.line and span.column:
            properties["col"] = str(span.column)
    properties["title"] = f"{finding.code} {finding.slug}"
    message = finding.message if finding.remedy is None else f"{finding.message}\n{finding.remedy.text}"
    return _command(level, properties, message)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    """A workflow command, with everything escaped that would end it or start another."""
    attributes = ",".join(f"{name}={_escape(visible(value), also=':,')}" for name, value in properties.items())
    return f"::{level} {attributes}::{_escape(visible(message))}"


def _escape(text: str, also: str = "") -> str:
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


RENDERER = Renderer(render=render, suffix=".github")
