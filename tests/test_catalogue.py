"""Rules read from their files by `ast` are the rules that run."""

from __future__ import annotations

import pytest

from mpdoctor.catalogue import find_rule, find_rules, rules
from mpdoctor.causes import all_causes
from mpdoctor.core.rule import load


@pytest.mark.parametrize("package", ["mpdoctor.gpu.rules", "mpdoctor.check.rules", "mpdoctor.check.scripts.rules", "mpdoctor.replay.detectors"])
def test_every_rule_that_runs_is_listed_as_it_is(package: str) -> None:
    for rule in load(package):
        entry = find_rule(rule.code)
        assert entry is not None, rule.code
        assert (entry.slug, entry.severity, entry.confidence, entry.doc) == (rule.slug, rule.severity, rule.confidence, rule.doc)
        assert entry.causes == ((rule.cause,) if rule.cause else ())


def test_codes_are_unique_and_slugs_within_a_kind() -> None:
    entries = rules()
    assert len({entry.code for entry in entries}) == len(entries)
    assert len({(entry.kind, entry.slug) for entry in entries}) == len(entries)


def test_every_cause_that_a_rule_names_exists() -> None:
    known = {cause.id for cause in all_causes()}
    assert {cause for entry in rules() for cause in entry.causes} <= known


def test_every_cause_has_a_voice() -> None:
    assert {cause.id for cause in all_causes()} <= {cause for entry in rules() for cause in entry.causes}


def test_every_entry_says_what_it_is_for() -> None:
    for entry in rules():
        assert entry.doc.summary, entry.code
        assert len(entry.doc.summary) < 160, entry.code


@pytest.mark.torch
def test_every_experiment_is_listed() -> None:
    import importlib
    import pkgutil

    package = importlib.import_module("mpdoctor.replay.live.experiments")
    modules = [importlib.import_module(f"{package.__name__}.{info.name}") for info in pkgutil.iter_modules(package.__path__)]
    exported = {module.EXPERIMENT.id for module in modules if hasattr(module, "EXPERIMENT")}
    assert exported == {entry.code for entry in rules() if entry.kind == "experiment"}


def test_names_are_found_in_any_case() -> None:
    entry = rules()[0]
    assert find_rule(entry.code.lower()) is entry
    assert entry in find_rules(entry.slug.upper())
    assert find_rules("CFG") == ()


def test_a_pattern_seen_in_script_and_replay_has_both_pages() -> None:
    assert {entry.kind for entry in find_rules("clip-before-unscale")} == {"script", "detector"}
