"""Annotations for GitHub Actions."""

from __future__ import annotations

import re
from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.report import Report
from mpdoctor.report.renderer import RenderOptions, load

COMMAND = re.compile(r"::(error|warning|notice) (?:\w+=[^:,]*,?)+::[^\r\n]*")


def lines(report: Report) -> list[str]:
    return load("github").render(report, RenderOptions()).split("\n")[:-1]


def test_the_annotations(reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert lines(reports["checked"]) == snapshot


def test_every_line_is_a_command_or_plain_words(report: Report) -> None:
    for line in lines(report):
        assert COMMAND.fullmatch(line) or line.startswith("mpdoctor")


def test_content_cannot_start_a_command(reports: dict[str, Report]) -> None:
    found = lines(reports["hostile"])
    assert sum(line.startswith("::") for line in found) == 1
    assert all("%0A" in line or not line.startswith("::") for line in found)
    assert "%250A" in found[0]


def test_at_most_ten_per_level_and_the_rest_is_counted(reports: dict[str, Report]) -> None:
    report = reports["checked"]
    many = replace(report, findings=report.findings[:1] * 14 + report.findings[1:2] * 11, crashes=())
    found = lines(many)
    assert sum(line.startswith("::error") for line in found) == 10
    assert sum(line.startswith("::warning") for line in found) == 10
    assert found[-1] == "mpdoctor: 4 errors and 1 warning more, beyond the ten per level that GitHub shows"


def test_the_worst_come_first(reports: dict[str, Report]) -> None:
    levels = [line.split()[0] for line in lines(replace(reports["checked"], crashes=())) if line.startswith("::")]
    assert levels == ["::error", "::warning", "::warning", "::notice"]


def test_a_failed_replay_is_one_error_with_its_cause(reports: dict[str, Report]) -> None:
    assert lines(reports["overflow"])[0].startswith("::error title=mpdoctor%3A diagnosed%3A fp16-range (confirmed)::")


def test_not_judged_is_a_warning(reports: dict[str, Report]) -> None:
    assert lines(reports["not-judged"])[0].startswith("::warning title=mpdoctor%3A could-not-judge::")
