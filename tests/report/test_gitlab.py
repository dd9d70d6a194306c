"""GitLab code quality."""

from __future__ import annotations

import json
from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.report import Report
from mpdoctor.report.renderer import RenderOptions, load


def issues(report: Report) -> list[dict]:
    return json.loads(load("gitlab").render(report, RenderOptions()))


def test_the_issues(reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert issues(reports["checked"]) == snapshot


def test_every_issue_has_what_gitlab_needs(report: Report) -> None:
    for issue in issues(report):
        assert set(issue) == {"check_name", "description", "severity", "fingerprint", "location"}
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"]["lines"]["begin"] >= 1
        assert not issue["location"]["path"].startswith("./")


def test_equal_findings_keep_different_fingerprints(reports: dict[str, Report]) -> None:
    report = reports["checked"]
    twice = issues(replace(report, findings=report.findings[:1] * 2, crashes=()))
    assert len({issue["fingerprint"] for issue in twice}) == 2


def test_not_judged_is_not_an_empty_list(reports: dict[str, Report]) -> None:
    assert [issue["check_name"] for issue in issues(reports["not-judged"])] == ["could-not-judge"]
    assert issues(reports["healthy"]) == []
