"""What stands in somebody's config cannot steer the terminal, nor the log of a CI system, that shows the report about it."""

from __future__ import annotations

import re

import pytest

from mpdoctor.cli.app import run
from mpdoctor.core.finding import Finding
from mpdoctor.core.location import FileSpan
from mpdoctor.report import legible as module
from mpdoctor.report.characters import one_line

CONFIG = """output_dir: out
learning_rate: 0.5
fp16: true
optim: "adamw\\e]0;x\\a\\n::error::forged"
"gradient_accumulation_step\\u202es": 3
"bf1\\e[31m6\\n::error::forged": 1
lr_scheduler_type: "a|b`c\\n::error::forged"
model_name_or_path: "google/gemma-2-9b\\e[2J\\n::error::forged"
warmup_ratio: "3\\e[0m"
"""
NAME = "tr\x1b[31main\n::error::forged.yaml"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def shown(tmp_path, monkeypatch, capsys):
    """Everything that `mpdoctor check` prints with these options."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_text(CONFIG)

    def show(*options: str) -> str:
        run(["check", *options])
        return "".join(capsys.readouterr())

    return show


@pytest.mark.parametrize("output", ["text", "markdown", "github", "gitlab", "junit", "sarif"])
@pytest.mark.parametrize("more", [[], ["--quiet"], ["--gpu", "a100"]])
def test_no_format_lets_them_through(shown, output, more):
    text = shown(NAME, "--output-format", output, *more)
    assert not CONTROL.search(text)
    assert not any(line.startswith("::error::forged") for line in text.splitlines())
    assert "learning_rate" in text.replace("\\_", "_")


def test_the_table_of_settings_and_the_diff_do_not_either(shown):
    for option in ("--show", "--diff"):
        text = shown(NAME, option)
        assert text
        assert not CONTROL.search(text)
        assert not any(line.startswith("::error::forged") for line in text.splitlines())


def test_errors_do_not_either(shown):
    text = shown("no\x1b[31m such\n::error::forged.yaml")
    assert text.startswith(r"error: no\x1b[31m such\n::error::forged.yaml: no such file")
    assert not CONTROL.search(text)


def test_spelling_out_is_done_in_one_place_and_twice_is_once(reports_of_check):
    before, after = reports_of_check
    assert all(finding.message == one_line(finding.message) for finding in after.findings)
    assert module.legible(after) == after
    assert [finding.location for finding in after.findings] == [finding.location for finding in before.findings], "places stay exact"


@pytest.fixture
def reports_of_check(tmp_path):
    from mpdoctor import api

    path = tmp_path / "train.yaml"
    path.write_text(CONFIG)
    report = api.run_check([str(path)])
    assert any(isinstance(finding, Finding) and isinstance(finding.location, FileSpan) for finding in report.findings)
    return report, module.legible(report)
