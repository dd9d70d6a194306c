"""Findings that are let pass: comments, baselines, settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor import api
from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.suppress import baseline_text, read_baseline
from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.finding import Severity
from mpdoctor.core.gate import FailOn
from mpdoctor.settings import find_settings

BAD = "output_dir: out\nbf16: true\nlearning_rate: 2e-5{}\nfp16_full_eval: true\n"


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(comment="", top=""):
        (tmp_path / "train.yaml").write_text(top + BAD.format(comment))
        return check_files(["train.yaml"], Options())

    return write


@pytest.mark.parametrize(
    ("comment", "top", "left"),
    [
        ("", "", {"CFG901", "CFG704"}),
        ("  # mpdoctor: ignore[CFG901] converted by our loader", "", {"CFG704"}),
        ("  # mpdoctor: ignore[numeric-string]", "", {"CFG704"}),
        ("  # mpdoctor: ignore[CFG9, CFG7]", "", set()),
        ("  # mpdoctor: ignore", "", set()),
        ("  # mpdoctor: ignore[CFG101]", "", {"CFG901", "CFG704"}),
        ("", "# mpdoctor: ignore-file[CFG9]\n", {"CFG704"}),
    ],
)
def test_ignore_comments(train, comment, top, left):
    result = train(comment, top)
    assert {finding.code for finding in result.findings} - {"CFG101"} == left
    assert bool(result.notes) == (left != {"CFG901", "CFG704"})


def test_a_baseline_knows_findings_and_lets_new_ones_through(train):
    known = train().findings
    Path("base.json").write_text(baseline_text(known))
    again = check_files(["train.yaml"], Options(baseline=read_baseline("base.json")))
    assert again.findings == []
    Path("train.yaml").write_text(Path("train.yaml").read_text() + "warmup_steps: 10\nwarmup_ratio: 0.9\n")
    assert [f.code for f in check_files(["train.yaml"], Options(baseline=read_baseline("base.json"))).findings] == ["CFG313"]


def test_a_fingerprint_outlives_edits_elsewhere(train):
    before = {finding.fingerprint for finding in train().findings}
    assert {finding.fingerprint for finding in train(top="# a comment\n\n").findings} == before


@pytest.mark.parametrize("content", [None, "{", "[]", '{"schema": "other"}', '{"schema": "mpdoctor.baseline/1", "findings": [1]}'])
def test_what_is_no_baseline_is_refused(tmp_path, content):
    path = tmp_path / "base.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UnreadableInput, match="baseline"):
        read_baseline(str(path))


SETTINGS = """
[tool.mpdoctor]
ignore = ["CFG9"]
fail-on = "warning"
gpu = ["v100"]
[tool.mpdoctor.severity]
CFG7 = "error"
bf16-pre-ampere = "off"
[tool.mpdoctor.thresholds]
lr_unknown_method = 1e-6
"""


def test_settings_are_found_upwards_and_applied(train, tmp_path, monkeypatch):
    train()
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    settings = find_settings()
    assert settings.fail_on is FailOn.WARNING
    report = api.run_check(["../../train.yaml"], settings=settings)
    found = {finding.code: finding.severity for finding in report.findings}
    assert "CFG901" not in found
    assert "CFG101" not in found
    assert found["CFG704"] is Severity.ERROR
    assert found["CFG306"] is Severity.WARNING
    assert report.gpus[0].compute_capability.value == (7, 0)


def test_a_pyproject_without_our_table_is_passed_over(tmp_path):
    (tmp_path / "pyproject.toml").write_text("not even [ toml")
    assert find_settings(tmp_path).source == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select = 3\n", "select is no list"),
        ("selct = []\n", "no setting 'selct'"),
        ("fail-on = 'loud'\n", "fail-on is 'loud'"),
        ("[severity]\nCFG1 = 'fatal'\n", "severity.CFG1 is 'fatal'"),
        ("[thresholds]\nlr_lore = 1\n", "no threshold 'lr_lore'"),
        ("[thresholds]\nlr_lora = '1'\n", "no number"),
        ("x = [\n", "not valid TOML"),
    ],
)
def test_wrong_settings_are_told(tmp_path, text, said):
    (tmp_path / "mpdoctor.toml").write_text(text)
    with pytest.raises(UnreadableInput, match=said.replace(".", r"\.")):
        find_settings(tmp_path)
