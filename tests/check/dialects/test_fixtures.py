"""Each dialect's files: recognised as such; healthy ones and traps stay quiet, faulty ones get the finding that their name says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor.check.dialect import dialects, recognise
from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.check.sources.load import load
from mpdoctor.core.finding import Severity

FOLDER = Path(__file__).parents[3] / "fixtures" / "configs"
FILES = [path for path in sorted(FOLDER.glob("*/*")) if path.is_file()]


def named(prefix: str) -> list:
    return [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in FILES if path.name.startswith(prefix)]


@pytest.mark.parametrize("path", [*named("healthy"), *named("trap"), *named("faulty")])
def test_recognised(path):
    recognised = [recognise(document).dialect for document in load(str(path))]
    assert path.parent.name in [dialect.name for dialect in recognised if dialect]


@pytest.mark.parametrize("path", [*named("healthy"), *named("trap")])
def test_quiet(path):
    result = check_files([str(path)], Options())
    loud = [(finding.code, finding.message) for finding in result.findings if finding.severity is not Severity.INFO]
    assert not loud
    assert not result.crashes
    assert result.recognised


@pytest.mark.parametrize("path", named("faulty"))
def test_faulty(path):
    code = path.name.split(".")[1]
    findings = check_files([str(path)], Options()).findings
    assert code in [finding.code for finding in findings]


def test_every_dialect_has_files():
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert set(dialects()) - folders == {"launcher"}, "a launch line is no file"
