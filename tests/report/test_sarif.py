"""SARIF 2.1.0: what code scanning services require of a log."""

from __future__ import annotations

import json
from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.location import FileSpan
from mpdoctor.core.report import Report
from mpdoctor.core.rule import RuleDoc
from mpdoctor.report.renderer import RenderOptions, load

PAGE = RuleDoc.parse("bf16 on a GPU without it.\n\nWhat it looks for\nbf16: true.\n\nWhy training breaks\nSlow.\n")


def run(report: Report, **options: object) -> dict:
    log = json.loads(load("sarif").render(report, RenderOptions(**options)))
    assert log["version"] == "2.1.0"
    assert len(log["runs"]) == 1
    return log["runs"][0]


def test_the_log(reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert load("sarif").render(reports["checked"], RenderOptions(rule_page=lambda code: PAGE if code == "CFG101" else None)) == snapshot


def test_every_result_refers_to_its_rule(report: Report) -> None:
    log = run(report)
    rules = log["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in log["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        for location in result["locations"]:
            region = location.get("physicalLocation", {}).get("region", {"startLine": 1})
            assert region["startLine"] >= 1


def test_rules_carry_their_documentation(reports: dict[str, Report]) -> None:
    rule = run(reports["checked"], rule_page=lambda code: PAGE)["tool"]["driver"]["rules"][0]
    assert rule["shortDescription"]["text"] == "bf16 on a GPU without it."
    assert rule["fullDescription"]["text"] == "bf16: true."
    assert "## Why training breaks" in rule["help"]["markdown"]


def test_the_fingerprint_ignores_the_line(reports: dict[str, Report]) -> None:
    report = reports["checked"]
    moved = replace(
        report, findings=tuple(replace(f, location=replace(f.location, line=99)) if isinstance(f.location, FileSpan) else f for f in report.findings)
    )
    prints = [{r["ruleId"]: r["partialFingerprints"] for r in run(r)["results"]} for r in (report, moved)]
    assert prints[0] == prints[1]


def test_paths_are_uris() -> None:
    from mpdoctor.report.places import uri

    assert uri("configs/a b#1.yaml") == "configs/a%20b%231.yaml"
    assert uri("/data/ü.yaml") == "file:///data/%C3%BC.yaml"


def test_not_judged_is_not_clean(reports: dict[str, Report]) -> None:
    invocation = run(reports["not-judged"])["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["level"] == "error"
    assert run(reports["healthy"])["invocations"][0]["executionSuccessful"] is True


def test_what_was_not_looked_at_is_told(reports: dict[str, Report]) -> None:
    texts = [n["message"]["text"] for n in run(reports["checked"])["invocations"][0]["toolExecutionNotifications"]]
    assert "CFG120 was not looked at: unknown: n_params" in texts
    assert "CFG777 failed inside mpdoctor: KeyError: 'lr'" in texts
