"""Exit codes."""

from __future__ import annotations

import pytest

from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.core.gate import ExitCode, FailOn, Outcome, exit_code, gated


def finding(severity: Severity) -> Finding:
    return Finding(code="CFG101", slug="x", severity=severity, confidence=Confidence.HIGH, message="m")


@pytest.mark.parametrize(
    ("severity", "gates"),
    [
        (Severity.ERROR, {FailOn.ERROR, FailOn.WARNING, FailOn.INFO}),
        (Severity.WARNING, {FailOn.WARNING, FailOn.INFO}),
        (Severity.INFO, {FailOn.INFO}),
    ],
)
def test_a_finding_reaches_the_gates_at_or_below_it(severity: Severity, gates: set[FailOn]) -> None:
    assert {fail_on for fail_on in FailOn if gated([finding(severity)], fail_on)} == gates


def test_a_bug_outranks_everything() -> None:
    for outcome in Outcome:
        assert exit_code(outcome, [finding(Severity.ERROR)], FailOn.NEVER, crashed=True, replay=True) is ExitCode.BUG


def test_not_judged_is_never_clean() -> None:
    for outcome in (Outcome.COULD_NOT_JUDGE, Outcome.NOT_REPRODUCED):
        assert exit_code(outcome, [], FailOn.NEVER, crashed=False, replay=False) is ExitCode.NOT_JUDGED


def test_a_failed_replay_needs_no_finding() -> None:
    assert exit_code(Outcome.UNDIAGNOSED, [], FailOn.ERROR, crashed=False, replay=True) is ExitCode.FINDINGS
    assert exit_code(Outcome.UNDIAGNOSED, [], FailOn.NEVER, crashed=False, replay=True) is ExitCode.CLEAN


def test_findings_of_a_healthy_replay_do_not_fail_it() -> None:
    assert exit_code(Outcome.HEALTHY, [finding(Severity.ERROR)], FailOn.INFO, crashed=False, replay=True) is ExitCode.CLEAN
