"""JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.gate import FailOn
from mpdoctor.core.report import Report
from mpdoctor.report.renderer import RenderOptions, load


def suite(report: Report, **options: object) -> ET.Element:
    root = ET.fromstring(load("junit").render(report, RenderOptions(**options)).encode())
    (found,) = root.findall("testsuite")
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(found.attrib[attribute]) == len(found.findall(f"testcase/{tag}"))
    assert int(found.attrib["tests"]) == len(found.findall("testcase"))
    return found


def failed(found: ET.Element) -> list[str]:
    return [case.attrib["name"].split()[0] for case in found.findall("testcase") if case.find("failure") is not None]


def test_the_document(reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert load("junit").render(reports["checked"], RenderOptions()) == snapshot


def test_every_report_is_well_formed(report: Report) -> None:
    assert suite(report).attrib["name"] == f"mpdoctor {report.command}"


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [
        (FailOn.ERROR, ["CFG101"]),
        (FailOn.WARNING, ["CFG101", "GPU203", "CFG301"]),
        (FailOn.INFO, ["CFG101", "GPU203", "CFG301", "CFG901"]),
        (FailOn.NEVER, []),
    ],
)
def test_only_what_reaches_the_gate_fails(reports: dict[str, Report], fail_on: FailOn, expected: list[str]) -> None:
    assert failed(suite(reports["checked"], fail_on=fail_on)) == expected


def test_a_replay_fails_by_its_outcome_alone(reports: dict[str, Report]) -> None:
    assert failed(suite(reports["overflow"])) == ["fp16-range"]
    assert failed(suite(reports["healthy"])) == []


def test_not_judged_is_an_error(reports: dict[str, Report]) -> None:
    assert suite(reports["not-judged"]).find("testcase/error") is not None


def test_inputs_without_findings_are_passed_tests(reports: dict[str, Report]) -> None:
    from dataclasses import replace

    from mpdoctor.core.report import InputFile

    report = replace(reports["checked"], inputs=(*reports["checked"].inputs, InputFile(path="./fine.yaml", role="config")))
    passed = [case.attrib["classname"] for case in suite(report).findall("testcase") if len(case) == 0]
    assert passed == ["mpdoctor", "fine.yaml"]
