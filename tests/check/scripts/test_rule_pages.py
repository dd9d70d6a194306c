"""Every rule page is complete, and its examples do what they say."""

from __future__ import annotations

import pytest

from mpdoctor.causes import all_causes
from mpdoctor.check.scripts import RULES, lint_script
from mpdoctor.core import rule
from mpdoctor.core.rule import HEADINGS

LOADED = rule.load(RULES)
EXAMPLES = [(r, example) for r in LOADED for example in r.doc.examples]


@pytest.mark.parametrize("loaded", LOADED, ids=lambda r: r.slug)
def test_page_has_all_headings_in_order_and_both_examples(loaded):
    assert list(loaded.doc.sections) == list(HEADINGS)
    assert all(loaded.doc.sections[heading] for heading in HEADINGS)
    assert {example.bad for example in loaded.doc.examples} == {True, False}
    assert loaded.doc.summary.endswith(".")


@pytest.mark.parametrize(("loaded", "example"), EXAMPLES, ids=lambda v: getattr(v, "slug", None) or ("bad" if v.bad else "good"))
def test_example_fires_exactly_its_own_rule_or_nothing(loaded, example):
    ran = lint_script("train.py", example.text)
    assert ran.crashes == () and ran.skipped == ()
    assert {finding.code for finding in ran.findings} == ({loaded.code} if example.bad else set())


@pytest.mark.parametrize("loaded", LOADED, ids=lambda r: r.slug)
def test_code_belongs_to_the_script_family_and_cause_is_on_the_checklist(loaded):
    assert loaded.code.startswith("CFG0") and len(loaded.code) == 6
    assert loaded.cause in {cause.id for cause in all_causes()}
