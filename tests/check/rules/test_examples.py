"""Every rule's documentation is its test: the bad example fires it, the good one is silent."""

from __future__ import annotations

import re

import pytest

from mpdoctor.check.dialect import dialects
from mpdoctor.check.engine import RULES
from mpdoctor.check.pipeline import Options, check_files
from mpdoctor.core import rule

SUFFIX = {"yaml": "yaml", "json": "json", "toml": "toml", "python": "py", "sh": "sh"}
ALL = rule.load(RULES)
EXAMPLES = [
    pytest.param(r, example, id=f"{r.code}-{r.slug}-{'bad' if example.bad else 'good'}-{i}") for r in ALL for i, example in enumerate(r.doc.examples)
]


def write(example, folder):
    """The example's files; a line `# file: NAME` starts another one."""
    parts = re.split(r"^# file: (\S+)\n", example.text, flags=re.MULTILINE)
    named = list(zip(parts[1::2], parts[2::2], strict=True)) or [(f"config.{SUFFIX[example.language]}", parts[0])]
    for name, text in named:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [str(folder / name) for name, _ in named]


@pytest.mark.parametrize(("tested", "example"), EXAMPLES)
def test_example(tested, example, tmp_path, cards):
    gpus = tuple(cards(name) for name in example.options.get("gpu", "").split(",") if name)
    options = Options(dialect=example.dialect, version=example.options.get("version"), gpus=gpus)
    result = check_files(write(example, tmp_path), options)
    fired = [finding for finding in result.findings if finding.code == tested.code]
    assert not result.crashes
    assert bool(fired) == example.bad, [(finding.code, finding.message) for finding in result.findings]
    for finding in fired:
        assert finding.location is not None
        assert finding.location.line or finding.location.key


@pytest.mark.parametrize("tested", ALL, ids=lambda r: r.code)
def test_page_is_complete(tested):
    assert list(tested.doc.sections) == list(rule.HEADINGS)
    assert all(tested.doc.sections.values())
    assert {example.bad for example in tested.doc.examples} == {True, False}
    assert all(example.dialect in dialects() for example in tested.doc.examples)
