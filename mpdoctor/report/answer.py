"""The report's answer in words, the same for every format made for reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from mpdoctor.core.cause import Verdict
from mpdoctor.core.finding import Severity
from mpdoctor.core.gate import Outcome
from mpdoctor.core.report import Report
from mpdoctor.core.rule import Skipped
from mpdoctor.report.numbers import count


class Tone(StrEnum):
    """How an answer is to be taken. Formats choose mark and colour by it."""

    GOOD = "good"
    BAD = "bad"
    CAUTION = "caution"
    UNKNOWN = "unknown"
    """Neither good nor bad: it could not be told."""


_OUTCOMES = {
    Outcome.HEALTHY: (Tone.GOOD, "healthy"),
    Outcome.DIAGNOSED: (Tone.BAD, "diagnosed"),
    Outcome.UNDIAGNOSED: (Tone.BAD, "failed, cause not found"),
    Outcome.NOT_REPRODUCED: (Tone.UNKNOWN, "not reproduced"),
    Outcome.COULD_NOT_JUDGE: (Tone.UNKNOWN, "could not judge"),
}

_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "remark"}


def status(report: Report) -> tuple[Tone, str]:
    """Tone and words: the outcome of a replay; how many findings of each severity for what is judged by its findings."""
    if report.command == "replay" or _OUTCOMES[report.outcome][0] is Tone.UNKNOWN:
        return _OUTCOMES[report.outcome]
    by_severity = Counter(finding.severity for finding in report.findings)
    words = ", ".join(count(by_severity[severity], noun) for severity, noun in _NOUNS.items() if by_severity[severity])
    if by_severity[Severity.ERROR]:
        return Tone.BAD, words
    return (Tone.CAUTION, words) if by_severity[Severity.WARNING] else (Tone.GOOD, words or "no findings")


def leading_verdict(report: Report) -> Verdict | None:
    """The verdict that the headline is about."""
    return next((verdict for verdict in report.verdicts if verdict.cause == report.headline.cause), None)


def reason(report: Report) -> str:
    """The headline's text without the remedy, which is shown on a line of its own."""
    verdict = leading_verdict(report)
    text = report.headline.text
    if verdict and verdict.remedy:
        text = text.removesuffix(verdict.remedy.text).rstrip()
    return text


def checklist(report: Report) -> tuple[Verdict, ...]:
    """The checklist of a report made for reading: none for `gpu`, which looks at no run."""
    return () if report.command == "gpu" else report.verdicts


def settings(report: Report) -> dict[str, str]:
    """What to set on this machine, by framework."""
    found = report.recommendation.get("settings")
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def seen(report: Report) -> list[str]:
    """The symptoms, each with its step, without repetitions."""
    details = [s.detail if s.step is None or "step" in s.detail else f"step {s.step}: {s.detail}" for s in report.symptoms]
    return list(dict.fromkeys(details))


def not_looked_at(report: Report) -> dict[str, list[str]]:
    """What was skipped though it could have told something, by reason."""
    return _by_reason(skipped for skipped in report.skipped if not skipped.needless)


def not_needed(report: Report) -> dict[str, list[str]]:
    """What was skipped because it had nothing to tell here, by reason."""
    return _by_reason(skipped for skipped in report.skipped if skipped.needless)


def not_needed_in_short(report: Report) -> str:
    """`not_needed` in one line; empty when there is nothing."""
    number = sum(map(len, not_needed(report).values()))
    if not number:
        return ""
    return f"{count(number, 'experiment')} not needed here; --experiments all runs those that can be run, the JSON report says why of each"


def _by_reason(entries: Iterable[Skipped]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for skipped in entries:
        what = reasons.setdefault(skipped.why, [])
        if skipped.what not in what:
            what.append(skipped.what)
    return reasons
