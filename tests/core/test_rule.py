"""Rules: found by scanning, documented by their docstring, isolated from each other."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule, RuleDefinitionError, RuleDoc, load, run, selected

MODULE = '''"""{summary}

What it looks for
    Things.

Example
    ```yaml hf_trainer bad gpu=v100
    bf16: true
    ```
"""
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Rule

RULE = Rule(code="{code}", severity=Severity.ERROR, check=lambda subject: iter(()))
'''

DOCSTRING = """Summary line.

What it looks for
Text with the words Example inside.

Example
```yaml hf bad gpu=v100
a: 1
```

Instead
```yaml hf good
a: 2
```
"""

numbers = itertools.count()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """An empty package on the import path."""
    name = f"rules_of_a_test_{next(numbers)}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name, folder
    for module in [m for m in sys.modules if m.startswith(name)]:
        del sys.modules[module]


def test_a_file_is_a_rule_and_its_name_the_slug(package: tuple[str, Path]) -> None:
    name, folder = package
    (folder / "second_rule.py").write_text(MODULE.format(summary="Second.", code="CFG102"))
    (folder / "family").mkdir()
    (folder / "family" / "__init__.py").write_text("")
    (folder / "family" / "first_rule_.py").write_text(MODULE.format(summary="First.", code="CFG101"))
    rules = load(name)
    assert [(r.code, r.slug, r.doc.summary) for r in rules] == [("CFG101", "first-rule", "First."), ("CFG102", "second-rule", "Second.")]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": "'''Doc.'''"}, "exports no RULE"),
        ({"a": MODULE.format(summary="A.", code="CFG101").split('"""')[2]}, "has no docstring"),
        ({"a": MODULE.format(summary="A.", code="CFG101"), "b": MODULE.format(summary="B.", code="CFG101")}, "CFG101 is already used by a"),
    ],
)
def test_a_module_that_is_no_rule_is_told(package: tuple[str, Path], files: dict[str, str], message: str) -> None:
    name, folder = package
    for file, text in files.items():
        (folder / f"{file}.py").write_text(text)
    with pytest.raises(RuleDefinitionError, match=message):
        load(name)


def test_a_docstring_is_taken_apart() -> None:
    doc = RuleDoc.parse(DOCSTRING)
    assert doc.summary == "Summary line."
    assert list(doc.sections) == ["What it looks for", "Example", "Instead"]
    assert [(e.dialect, e.bad, e.text, e.options) for e in doc.examples] == [("hf", True, "a: 1\n", {"gpu": "v100"}), ("hf", False, "a: 2\n", {})]
    assert doc.markdown("T").startswith("# T\n\nSummary line.\n\n## What it looks for\n\nText")


EVIDENCE = Evidence(text="t", kind=EvidenceKind.CONFIG)


def rule(code: str, check: object, *needs: str) -> Rule[dict[str, int]]:
    return Rule(code=code, severity=Severity.WARNING, check=check, needs=needs, slug=code.lower())


def test_a_rule_that_raises_does_not_stop_the_others() -> None:
    def broken(subject: dict[str, int]) -> Iterator[Hit]:
        yield Hit(message="before")
        raise KeyError(subject["a"])

    result = run(
        [rule("CFG101", broken), rule("CFG102", lambda s: iter([Hit(message="fine"), Exclusion(cause="x", evidence=EVIDENCE)]))],
        {"a": 1},
        lambda s, n: n in s,
    )
    assert [f.message for f in result.findings] == ["before", "fine"]
    assert [c.what for c in result.crashes] == ["CFG101"]
    assert "KeyError" in result.crashes[0].traceback
    assert [x.cause for x in result.exclusions] == ["x"]


def test_a_rule_whose_subject_is_unknown_is_listed_as_skipped() -> None:
    result = run([rule("CFG101", lambda s: iter([Hit(message="m")]), "a", "b")], {"a": 1}, lambda s, n: n in s)
    assert result.findings == ()
    assert [(s.what, s.why) for s in result.skipped] == [("CFG101", "unknown: b")]


def test_a_hit_overrides_the_defaults_of_its_rule() -> None:
    result = run([rule("CFG101", lambda s: iter([Hit(message="m", severity=Severity.INFO, cause="c")]))], {}, lambda s, n: True)
    assert (result.findings[0].severity, result.findings[0].cause, result.findings[0].slug) == (Severity.INFO, "c", "cfg101")


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        ((), (), True),
        (("CFG1",), (), True),
        (("CFG2",), (), False),
        (("bad-pattern",), (), True),
        ((), ("CFG101",), False),
        (("CFG101",), ("CFG",), False),
    ],
)
def test_selection_by_code_prefix_or_slug(select: tuple[str, ...], ignore: tuple[str, ...], expected: bool) -> None:
    assert selected("CFG101", "bad-pattern", select=select, ignore=ignore) is expected
