"""Whole scripts: each fault is found on its line, and nothing else is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from mpdoctor.check.scripts import lint_script, looks_like_training

FIXTURES = Path(__file__).parents[3] / "fixtures" / "scripts"
SCRIPTS = sorted(FIXTURES.rglob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_findings_are_exactly_those_that_the_script_announces(path):
    text = path.read_text()
    expected = Counter(
        (number, code) for number, line in enumerate(text.split("\n"), 1) for code in re.findall(r"CFG\d{3}", line.partition("# expect:")[2])
    )
    assert looks_like_training(text)
    ran = lint_script(str(path), text)
    assert ran.crashes == () and ran.skipped == ()
    assert Counter((finding.location.line, finding.code) for finding in ran.findings) == expected
    assert bool(expected) == (path.parent.name == "faulty")
