"""Running the rules over one run."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from mpdoctor.check.subject import CheckSubject, known
from mpdoctor.core import rule
from mpdoctor.core.rule import Rule, RuleRun, Skipped

RULES = "mpdoctor.check.rules"


@cache
def families() -> tuple[str, ...]:
    """Package names of all rule families."""
    package = importlib.import_module(RULES)
    return tuple(sorted(f"{RULES}.{info.name}" for info in pkgutil.iter_modules(package.__path__) if info.ispkg))


def run_rules(subject: CheckSubject, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> RuleRun:
    """The findings of all rules that are on and whose family concerns this run."""
    rules, skipped = active_rules(subject, select=tuple(select), ignore=tuple(ignore))
    outcome = rule.run(rules, subject, known)
    unknown = [Skipped(what=entry.what, why=_in_words(entry.why)) for entry in outcome.skipped]
    return replace(outcome, skipped=(*skipped, *unknown))


def active_rules(subject: CheckSubject, *, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> tuple[list[Rule[Any]], list[Skipped]]:
    """The rules to run, by code; and the families that cannot be run, with the reason."""
    found: list[Rule[Any]] = []
    skipped: list[Skipped] = []
    for family in families():
        applies = getattr(importlib.import_module(family), "applies", None)
        concerned: bool | str = True if applies is None else applies(subject)
        if concerned is True:
            found += [r for r in rule.load(family) if rule.selected(r.code, r.slug, select=select, ignore=ignore)]
        elif isinstance(concerned, str):
            skipped.append(Skipped(what=f"{family.rpartition('.')[2].replace('_', ' ')} rules", why=concerned))
    return sorted(found, key=lambda r: r.code), skipped


def _in_words(why: str) -> str:
    """`unknown: gpus, tf32` for a reader who does not know the fields' names."""
    names = why.removeprefix("unknown: ").split(", ")
    words = [_WORDS.get(name) or name.replace("_", " ") for name in names]
    return f"not known: {', '.join(words)}"


_WORDS = {"gpus": "the GPU (--gpu names it)", "lr": "learning rate", "n_params": "the model's size", "scaler": "loss scaling", "tf32": "TF32"}
