"""The answer: what is wrong, how sure that is, and what to change."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.text import Text

from mpdoctor.core.cause import Verdict
from mpdoctor.core.finding import Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.location import TensorSite
from mpdoctor.core.report import NonFinite, Report
from mpdoctor.report.numbers import count, dtype
from mpdoctor.report.sections.ink import STANDINGS, Ink

_BADGES = {
    Outcome.HEALTHY: ("✓ HEALTHY", "bold white on green"),
    Outcome.DIAGNOSED: ("✗ DIAGNOSED", "bold white on red"),
    Outcome.UNDIAGNOSED: ("✗ FAILED, CAUSE NOT FOUND", "bold white on red"),
    Outcome.NOT_REPRODUCED: ("? NOT REPRODUCED", "bold black on yellow"),
    Outcome.COULD_NOT_JUDGE: ("? COULD NOT JUDGE", "bold black on yellow"),
}


def headline(report: Report, ink: Ink) -> list[RenderableType]:
    """The badge with the cause, then what was seen, where it began, why, and what to change."""
    verdict = leading_verdict(report)
    rows = _rows(report, verdict, ink)
    parts: list[RenderableType] = [_badge(report, verdict, ink)]
    if rows and not ink.quiet:
        parts.append(Text(""))
    if len(rows) == 1 and not rows[0][0]:
        return [*parts, ink.indented(rows[0][1], 1)]
    table = ink.grid(7, None)
    for label, content in rows:
        table.add_row(ink(label, "dim"), content)
    return [*parts, ink.indented(table, 1)] if rows else parts


def leading_verdict(report: Report) -> Verdict | None:
    """The verdict that the headline is about."""
    return next((v for v in report.verdicts if v.cause == report.headline.cause), None)


def reason(report: Report) -> str:
    """The headline's text without the remedy, which is shown on a line of its own."""
    verdict = leading_verdict(report)
    text = report.headline.text
    if verdict and verdict.remedy:
        text = text.removesuffix(verdict.remedy.text).rstrip()
    return text


def _badge(report: Report, verdict: Verdict | None, ink: Ink) -> Text:
    if report.command == "replay" or report.outcome in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED):
        label, style = _BADGES[report.outcome]
    else:
        label, style = _gate_badge(report)
    line = ink.join((f" {label} ", style))
    if verdict:
        words, standing_style = STANDINGS[verdict.standing]
        line.append_text(ink.join("  ", (verdict.cause, "bold"), "  ", (words[2:], standing_style)))
    return line


def _gate_badge(report: Report) -> tuple[str, str]:
    """For commands that are judged by their findings: how many of each severity."""
    by_severity = Counter(finding.severity for finding in report.findings)
    parts = [count(by_severity[severity], noun) for severity, noun in _NOUNS.items() if by_severity[severity]]
    if by_severity[Severity.ERROR]:
        return f"✗ {', '.join(parts)}", "bold white on red"
    if by_severity[Severity.WARNING]:
        return f"! {', '.join(parts)}", "bold black on yellow"
    return f"✓ {', '.join(parts) or 'no findings'}", "bold white on green"


_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "remark"}


def _rows(report: Report, verdict: Verdict | None, ink: Ink) -> list[tuple[str, RenderableType]]:
    rows: list[tuple[str, RenderableType]] = []
    seen = list(dict.fromkeys(s.detail if s.step is None or "step" in s.detail else f"step {s.step}: {s.detail}" for s in report.symptoms))
    if seen:
        rows.append(("seen", ink("\n".join(seen))))
    if origin := report.first_nonfinite:
        rows.append(("first", _origin(origin, ink)))
    why = reason(report)
    if why and verdict:
        rows.append(("why", ink(why)))
    elif why:
        rows.insert(0, ("", ink(why)))
    if report.first_nonfinite and report.first_nonfinite.why not in why:
        rows.append(("", ink(report.first_nonfinite.why)))
    remedy = verdict.remedy if verdict else None
    if remedy:
        rows.append(("change", Group(ink(remedy.text, "bold"), *(ink.patch(remedy.patch) if remedy.patch else ()))))
    return rows


def _origin(origin: NonFinite, ink: Ink) -> Text:
    text = ink.join(
        (origin.kind, "bold red"), " in ", (place(origin.site), "bold"), f", {origin.site.phase}, step {origin.site.step}, {dtype(origin.dtype)}"
    )
    if origin.site.source:
        text.append_text(ink.join("\n", (str(origin.site.source), "cyan")))
    if origin.rows:
        text.append_text(ink(f"\nrow{'s' if len(origin.rows) > 1 else ''} {_ranges(origin.rows)} of the batch"))
    if origin.hurts_at:
        where = f" ({origin.hurts_at.source})" if origin.hurts_at.source else ""
        text.append_text(ink(f"\ndoes harm at {place(origin.hurts_at)}, {origin.hurts_at.phase}{where}"))
    return text


def place(site: TensorSite) -> str:
    """A site in a few words: tensor, or op in module."""
    what = site.tensor or (site.op or "").removeprefix("aten.")
    if site.module:
        return f"{site.module} ({what})" if what else site.module
    outside = "loss code" if site.phase == "loss" else "the root module" if site.phase == "forward" else ""
    return f"{outside} ({what})" if outside and what else what or outside or str(site.phase)


def _ranges(rows: tuple[int, ...]) -> str:
    """Row numbers, neighbours joined: `0-2, 7`."""
    groups: list[list[int]] = []
    for row in sorted(set(rows)):
        if groups and row == groups[-1][-1] + 1:
            groups[-1].append(row)
        else:
            groups.append([row])
    texts = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups]
    return ", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")
