"""Running the rules over one run."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import Any

from mpdoctor.check.subject import CheckSubject, known
from mpdoctor.core import rule
from mpdoctor.core.rule import Rule, RuleRun

RULES = "mpdoctor.check.rules"


@cache
def families() -> tuple[str, ...]:
    """Package names of all rule families."""
    package = importlib.import_module(RULES)
    return tuple(sorted(f"{RULES}.{info.name}" for info in pkgutil.iter_modules(package.__path__) if info.ispkg))


def run_rules(subject: CheckSubject, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> RuleRun:
    """The findings of all rules that are on and whose family concerns this run."""
    return rule.run(active_rules(subject, select=tuple(select), ignore=tuple(ignore)), subject, known)


def active_rules(subject: CheckSubject, *, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> list[Rule[Any]]:
    """The rules to run, by code."""
    found: list[Rule[Any]] = []
    for family in families():
        applies = getattr(importlib.import_module(family), "applies", None)
        if applies is None or applies(subject):
            found += [r for r in rule.load(family) if rule.selected(r.code, r.slug, select=select, ignore=ignore)]
    return sorted(found, key=lambda r: r.code)
