"""All rules of all commands, read from their files without importing them.

A rule's module may need torch (the experiments do); its code, severity and documentation do not. They are read from the source by `ast`, so
that `mpdoctor explain` and `mpdoctor rules` work with the light install.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import RuleDoc

PACKAGES = {
    "gpu/rules": "gpu",
    "check/rules": "config",
    "check/scripts/rules": "script",
    "replay/detectors": "detector",
    "replay/live/experiments": "experiment",
}
"""Folders that hold rules, and what their rules judge."""

EXPORTS = ("RULE", "EXPERIMENT")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEntry:
    """One rule, detector or experiment.

    Attributes:
        code: stable code (`CFG101`).
        slug: name of its file, with hyphens.
        kind: what it judges: `gpu`, `config`, `script`, `detector` or `experiment`.
        severity: default severity; None for an experiment.
        confidence: default confidence; None for an experiment.
        causes: ids of the causes that it speaks for.
        doc: its documentation.
    """

    code: str
    slug: str
    kind: str
    severity: Severity | None
    confidence: Confidence | None
    causes: tuple[str, ...]
    doc: RuleDoc


@cache
def rules() -> tuple[RuleEntry, ...]:
    """Every rule, detector and experiment, by code."""
    root = files("mpdoctor")
    found = [
        entry
        for folder, kind in PACKAGES.items()
        if (package := root.joinpath(*folder.split("/"))).is_dir()
        for module in _modules(package)
        if (entry := _entry(module, kind))
    ]
    return tuple(sorted(found, key=lambda entry: entry.code))


def find_rule(code: str) -> RuleEntry | None:
    """The rule with this code (in any case), or None."""
    return next((entry for entry in rules() if entry.code == code.upper()), None)


def find_rules(name: str) -> tuple[RuleEntry, ...]:
    """The rules with this code or slug (in any case). A script, a config and a replay can show the same bad pattern: they share its slug."""
    return tuple(entry for entry in rules() if entry.code == name.upper() or entry.slug == name.lower())


def _modules(folder: Traversable) -> Iterator[Traversable]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _modules(item)
        elif item.name.endswith(".py") and item.name != "__init__.py":
            yield item


def _entry(module: Traversable, kind: str) -> RuleEntry | None:
    """The rule that a module exports; None for a module that exports none."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    exported = next((call for statement in tree.body if (call := _exported(statement))), None)
    docstring = ast.get_docstring(tree)
    if exported is None or not docstring:
        return None
    values = {keyword.arg: _literal(keyword.value) for keyword in exported.keywords}
    code = values.get("code") or values.get("id")
    if not isinstance(code, str):
        return None
    causes = values.get("causes") or (values.get("cause"),)
    return RuleEntry(
        code=code,
        slug=module.name.removesuffix(".py").strip("_").replace("_", "-"),
        kind=kind,
        severity=Severity(str(values["severity"])) if values.get("severity") else None,
        confidence=None if kind == "experiment" else Confidence(str(values.get("confidence") or "high")),
        causes=tuple(str(cause) for cause in (causes if isinstance(causes, tuple) else (causes,)) if cause),
        doc=RuleDoc.parse(docstring),
    )


def _exported(statement: ast.stmt) -> ast.Call | None:
    """The call whose result a statement binds to one of `EXPORTS`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if name in EXPORTS:
            return call
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as call) if name in EXPORTS:
            return call
    return None


def _literal(node: ast.expr) -> object:
    """Value of a literal, name of an enum's member in lower case, None for anything computed."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=elements):
            return tuple(_literal(element) for element in elements)
        case ast.Attribute(attr=attribute):
            return attribute.lower()
    return None
