"""Markdown for a pull request, an issue or a job summary: the answer in sight, the rest folded away."""

from __future__ import annotations

import re

from mpdoctor.core.finding import Finding
from mpdoctor.core.location import TensorSite
from mpdoctor.core.report import ExperimentOutcome, Report
from mpdoctor.core.version import __version__
from mpdoctor.report import answer
from mpdoctor.report.answer import Tone
from mpdoctor.report.characters import one_line, to_ascii, visible
from mpdoctor.report.measured import in_words
from mpdoctor.report.numbers import count, dtype, number, plain, words
from mpdoctor.report.places import place, ranges, shown_path, source, span_of, worst_first
from mpdoctor.report.renderer import Renderer, RenderOptions

MOST_FINDINGS = 20
MOST_STEPS = 8
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")
_MARKS = {Tone.GOOD: "✅", Tone.BAD: "❌", Tone.CAUTION: "⚠️", Tone.UNKNOWN: "❔"}
_RESULTS = {
    ExperimentOutcome.FAILURE_GONE: "failure gone",
    ExperimentOutcome.SAME_FAILURE: "same failure",
    ExperimentOutcome.OTHER_FAILURE: "other failure",
    ExperimentOutcome.NOT_RUN: "not run",
}


def render(report: Report, options: RenderOptions) -> str:
    """About sixty lines: answer, checklist, findings; timeline, experiments, steps and circumstances folded."""
    parts = [_answer(report), _settings(report), _checklist(report), _findings(report)]
    parts += [_timeline(report), _experiments(report), _steps(report), _measurements(report), _not_looked_at(report), _circumstances(report)]
    text = "\n\n".join(part for part in parts if part) + f"\n\n<sub>mpdoctor {__version__}</sub>\n"
    return to_ascii(text) if options.ascii else text


def text_of(text: str) -> str:
    """Any text on one line, with nothing in it that Markdown, HTML or a forge would interpret (mentions included)."""
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("@", "&#64;")


def code(text: str) -> str:
    """Any text as inline code."""
    text = one_line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if fence != "`" else f"`{text}`"


def _fenced(text: str, language: str = "") -> str:
    text = visible(text).rstrip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" if body else ""


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]) if rows else ""


def _answer(report: Report) -> str:
    verdict = answer.leading_verdict(report)
    tone, words = answer.status(report)
    cause = f" · {code(verdict.cause)} {verdict.standing.value.replace('-', ' ')}" if verdict else ""
    lines = [f"### mpdoctor {report.command}: {_MARKS[tone]} {words}{cause}"]
    if why := answer.reason(report):
        lines.append(text_of(why))
    if origin := report.first_nonfinite:
        at = f" at {code(source(origin.site.source))}" if origin.site.source else ""
        where = f"{code(place(origin.site))}, {origin.site.phase} of step {origin.site.step}, {dtype(origin.dtype)}{at}"
        rows = f", row{'s' if len(origin.rows) > 1 else ''} {ranges(origin.rows)} of the batch" if origin.rows else ""
        lines.append(f"**First bad value:** {origin.kind} in {where}{rows}: {text_of(origin.why)}")
    if verdict and verdict.remedy:
        lines.append(f"**Change:** {text_of(verdict.remedy.text)}")
        if verdict.remedy.patch:
            lines.append(_fenced(verdict.remedy.patch, "diff"))
    return "\n\n".join(lines)


def _settings(report: Report) -> str:
    blocks = [f"**{text_of(name)}**\n\n{_fenced(text)}" for name, text in answer.settings(report).items()]
    return _folded(f"What to set: {text_of(str(report.recommendation.get('text', '')))}", "\n\n".join(blocks))


def _checklist(report: Report) -> str:
    rows = [
        [
            str(i),
            code(v.cause),
            f"**{v.standing.value}**" if v.cause == report.headline.cause else v.standing.value.replace("-", " "),
            text_of(v.evidence[0].text) if v.evidence else "",
        ]
        for i, v in enumerate(answer.checklist(report), start=1)
    ]
    return _table(["", "cause", "standing", "evidence"], rows)


def _findings(report: Report) -> str:
    found = worst_first(report)
    table = _table(["severity", "rule", "where", "what"], [_finding(finding) for finding in found[:MOST_FINDINGS]])
    if len(found) > MOST_FINDINGS:
        table += f"\n\nand {count(len(found) - MOST_FINDINGS, 'finding')} more"
    return _folded(count(len(found), "finding"), table) if report.command == "replay" else table


def _finding(finding: Finding) -> list[str]:
    span = span_of(finding)
    where = code(source(span)) if span else text_of(_where(finding))
    what = text_of(finding.message) + (f"<br>→ {text_of(finding.remedy.text)}" if finding.remedy else "")
    return [finding.severity.value, code(finding.code), where, what]


def _where(finding: Finding) -> str:
    """A place outside any file."""
    match finding.location:
        case None:
            return ""
        case TensorSite() as site:
            return f"step {site.step}, {site.phase}: {place(site)}"
        case other:
            return str(other)


def _timeline(report: Report) -> str:
    marks = {"origin": "**begins here**", "harm": "does harm", "spread": "spreads"}
    rows = [
        [
            e.site.phase.value,
            code(place(e.site)),
            dtype(e.dtype),
            number(e.amax, 3) if e.amax is not None else "",
            ": ".join(filter(None, [marks.get(e.marker, ""), text_of(e.note)])),
        ]
        for e in report.timeline
        if e.marker or len(report.timeline) <= 12
    ][:16]
    return _folded("The failing step, from input to optimizer", _table(["phase", "where", "dtype", "max", ""], rows))


def _experiments(report: Report) -> str:
    rows = [[code(e.id), text_of(e.changes), _RESULTS[e.outcome], text_of(e.detail)] for e in report.experiments]
    return _folded("What-if runs: the same state and batches, one thing changed in each", _table(["", "change", "result", "seen"], rows))


def _steps(report: Report) -> str:
    rows = [
        [str(s.step), *(number(value) for value in (s.loss, s.grad_norm, s.scale, s.lr)), "skipped" if s.skipped else ""]
        for s in report.steps[-MOST_STEPS:]
    ]
    return _folded("Last steps", _table(["step", "loss", "grad norm", "scale", "lr", ""], rows))


def _measurements(report: Report) -> str:
    rows = [[text_of(name), text_of(text)] for name, text in in_words(report)]
    return _folded("Measured", _table(["", ""], rows))


def _not_looked_at(report: Report) -> str:
    lines = [f"- {text_of(', '.join(what))}: {text_of(why)}" for why, what in answer.not_looked_at(report).items()]
    if rest := answer.not_needed_in_short(report):
        lines.append(f"- {text_of(rest)}")
    lines += [f"- **failed inside mpdoctor:** {text_of(f'{crash.what}: {crash.error}')}" for crash in report.crashes]
    return _folded("Not looked at", "\n".join(lines))


def _circumstances(report: Report) -> str:
    rows = [[words(item.role), code(shown_path(item.path))] for item in report.inputs[:6]]
    rows += [[text_of(words(str(name))), text_of(plain(value))] for name, value in report.environment.items()]
    notes = "\n".join(f"- {text_of(note)}" for note in report.notes)
    return _folded("How it was run", "\n\n".join(part for part in (_table(["", ""], rows), notes) if part))


RENDERER = Renderer(render=render, suffix=".md")
