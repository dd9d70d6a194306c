"""Where a report goes, and which exit code it gives."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from mpdoctor.cli.deliver import check, deliver, destinations
from mpdoctor.cli.options import ReportOptions
from mpdoctor.core.cause import Headline
from mpdoctor.core.errors import UsageError
from mpdoctor.core.finding import Confidence, Finding, Severity
from mpdoctor.core.gate import FailOn, Outcome
from mpdoctor.core.report import Report
from mpdoctor.core.rule import Crash


def report(*severities: Severity, command: str = "check", outcome: Outcome = Outcome.HEALTHY, crashes: tuple[Crash, ...] = ()) -> Report:
    found = tuple(Finding(code="CFG101", slug="x", severity=s, confidence=Confidence.HIGH, message="m") for s in severities)
    return Report(command=command, outcome=outcome, headline=Headline(cause=None, standing=None, text="t"), findings=found, crashes=crashes)


def where(*formats: str, output: str | None = None) -> list[tuple[str, str | None]]:
    options = ReportOptions(output_format=list(formats), output=Path(output) if output else None)
    return [(d.format, str(d.path) if d.path else None) for d in destinations(options)]


def test_text_goes_to_stdout_by_default() -> None:
    assert where() == [("text", None)]


def test_a_format_with_a_file_comes_besides_the_text() -> None:
    assert where("json=r.json") == [("json", "r.json"), ("text", None)]


def test_a_text_file_replaces_the_text_on_stdout() -> None:
    assert where("text=r.txt") == [("text", "r.txt")]


def test_output_takes_the_format_without_a_file() -> None:
    assert where("json", output="r.out") == [("json", "r.out")]


@pytest.mark.parametrize(("file", "expected"), [("r.json", "json"), ("r.txt", "text"), ("r", "text"), ("r.unheard-of", "text")])
def test_the_suffix_chooses_the_format(file: str, expected: str) -> None:
    assert where(output=file) == [(expected, file)]


def test_two_formats_for_stdout_are_refused() -> None:
    with pytest.raises(UsageError, match="only one format can go to stdout, not json and text"):
        where("json", "text")


def test_two_formats_in_one_file_are_refused() -> None:
    with pytest.raises(UsageError, match="same file"):
        where("json=r", "text=./r")


def test_an_empty_file_name_is_refused() -> None:
    with pytest.raises(UsageError, match="no file after the equals sign"):
        where("json=")


def test_a_missing_folder_is_told_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        check(ReportOptions(output=tmp_path / "missing" / "r.json"))


def test_a_folder_as_file_is_told_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a folder"):
        check(ReportOptions(output=tmp_path))


def test_a_mistyped_code_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rule is called 'bf16-pre-amper'"):
        check(ReportOptions(ignore=["bf16-pre-amper"]))


def test_files_are_whole_and_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.json"
    file.write_text("old")
    deliver(report(), ReportOptions(output_format=[f"json={file}"]))
    assert json.loads(file.read_text())["outcome"] == "healthy"
    assert [item.name for item in tmp_path.iterdir()] == ["r.json"]
    assert f"wrote {file} (json)" in capsys.readouterr().err


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        deliver(report(), ReportOptions(output=tmp_path / "r.txt", quiet=True))
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "r.txt").stat().st_mode) == 0o644


def test_stdout_holds_the_report_alone(capsys: pytest.CaptureFixture[str]) -> None:
    deliver(report(), ReportOptions(output_format=["json"]))
    assert json.loads(capsys.readouterr().out)["command"] == "check"


@pytest.mark.parametrize(
    ("findings", "fail_on", "expected"),
    [
        ((), FailOn.INFO, 0),
        ((Severity.WARNING,), FailOn.ERROR, 0),
        ((Severity.WARNING,), FailOn.WARNING, 1),
        ((Severity.INFO, Severity.ERROR), FailOn.ERROR, 1),
        ((Severity.ERROR,), FailOn.NEVER, 0),
    ],
)
def test_the_gate(findings: tuple[Severity, ...], fail_on: FailOn, expected: int) -> None:
    assert deliver(report(*findings), ReportOptions(fail_on=fail_on, quiet=True)) == expected


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [(Outcome.HEALTHY, 0), (Outcome.DIAGNOSED, 1), (Outcome.UNDIAGNOSED, 1), (Outcome.NOT_REPRODUCED, 3), (Outcome.COULD_NOT_JUDGE, 3)],
)
def test_a_replay_is_judged_by_its_outcome(outcome: Outcome, expected: int) -> None:
    assert deliver(report(command="replay", outcome=outcome), ReportOptions(quiet=True)) == expected


def test_exit_zero_hides_findings_but_not_a_bug() -> None:
    crash = Crash(what="CFG101", error="KeyError: 1", traceback="")
    assert deliver(report(Severity.ERROR), ReportOptions(exit_zero=True)) == 0
    assert deliver(report(Severity.ERROR, crashes=(crash,)), ReportOptions(exit_zero=True)) == 4


@pytest.mark.parametrize("formats", [[], ["json"]])
def test_no_format_changes_the_exit_code(formats: list[str]) -> None:
    assert deliver(report(Severity.ERROR), ReportOptions(output_format=formats)) == 1
