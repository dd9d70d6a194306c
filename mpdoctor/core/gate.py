"""Exit codes, and the gate that turns a report into one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum

from mpdoctor.core.finding import Finding, Severity


class ExitCode(IntEnum):
    """What the process returns. The output format never changes it."""

    CLEAN = 0
    """Nothing at or above the gate; for `replay`: healthy."""
    FINDINGS = 1
    """Findings at or above the gate; for `replay`: a failure, diagnosed or not."""
    USAGE = 2
    """Wrong usage, or an input that cannot be read."""
    NOT_JUDGED = 3
    """Could not judge: no dialect recognised, nothing to replay, failure not reproduced."""
    BUG = 4
    """A bug of mpdoctor. Never 1: a crash must not look like a finding."""


class Outcome(StrEnum):
    """What a run of mpdoctor came to."""

    HEALTHY = "healthy"
    DIAGNOSED = "diagnosed"
    UNDIAGNOSED = "undiagnosed"
    """It failed, and no cause is confirmed or likely."""
    NOT_REPRODUCED = "not-reproduced"
    COULD_NOT_JUDGE = "could-not-judge"


class FailOn(StrEnum):
    """The lowest severity that fails the gate."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def gated(findings: Iterable[Finding], fail_on: FailOn) -> bool:
    """Whether a finding reaches the gate."""
    if fail_on is FailOn.NEVER:
        return False
    threshold = Severity(fail_on.value).rank
    return any(finding.severity.rank >= threshold for finding in findings)


def exit_code(outcome: Outcome, findings: Iterable[Finding], fail_on: FailOn, *, crashed: bool, replay: bool) -> ExitCode:
    """The process's exit code.

    A crashed rule or detector gives `BUG` whatever else was found. A replay is judged by its
    outcome (its findings are evidence, not violations); other commands by their findings.
    """
    if crashed:
        return ExitCode.BUG
    if outcome in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED):
        return ExitCode.NOT_JUDGED
    broken = outcome in (Outcome.DIAGNOSED, Outcome.UNDIAGNOSED) and fail_on is not FailOn.NEVER
    failed = broken if replay else gated(findings, fail_on)
    return ExitCode.FINDINGS if failed else ExitCode.CLEAN
