"""Rules: one file, one rule, found by scanning a folder.

A rule's module exports `RULE`. Its slug is the module's name (with hyphens), its documentation and
its examples are the module's docstring. The same machinery carries the config rules (`CFG`), the GPU
rules (`GPU`), the detectors of the replay (`RUN`) and the script rules; they differ in their subject.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import cache
from typing import Any, Generic, TypeVar

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.evidence import Evidence
from mpdoctor.core.finding import Confidence, Finding, Remedy, Severity
from mpdoctor.core.location import FileSpan, Location
from mpdoctor.core.record import dataclass
from mpdoctor.core.training import Origin, Setting

S = TypeVar("S")
"""The subject that a rule judges."""

HEADINGS = (
    "What it looks for",
    "Why training breaks",
    "When it is fine",
    "Example",
    "Instead",
    "How to confirm",
    "References",
)
"""Headings of a rule's docstring, each on a line of its own, in this order."""

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A fenced example of a rule's documentation; tests run it.

    The fence's info string is `LANGUAGE DIALECT bad|good [option=value ...]`.
    """

    language: str
    dialect: str
    bad: bool
    text: str
    options: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDoc:
    """A rule's docstring, taken apart. `sections` maps a heading to its Markdown text."""

    summary: str
    sections: dict[str, str]

    @classmethod
    def parse(cls, docstring: str) -> RuleDoc:
        """Split a docstring into the summary line and the sections under `HEADINGS`."""
        lines = docstring.strip().splitlines()
        sections: dict[str, list[str]] = {}
        current: list[str] = []
        for line in lines[1:]:
            if line.strip() in HEADINGS and line == line.strip():
                current = sections.setdefault(line.strip(), [])
            else:
                current.append(line)
        return cls(summary=lines[0].strip(), sections={name: "\n".join(text).strip() for name, text in sections.items()})

    @property
    def examples(self) -> tuple[Example, ...]:
        """All fenced examples whose info string says whether the rule fires on them."""
        found = []
        for text in self.sections.values():
            for match in _FENCE.finditer(text + "\n"):
                words = match["info"].split()
                if len(words) >= 3 and words[2] in ("bad", "good"):
                    options = dict(word.split("=", 1) for word in words[3:])
                    found.append(Example(language=words[0], dialect=words[1], bad=words[2] == "bad", text=match["text"], options=options))
        return tuple(found)

    def markdown(self, title: str) -> str:
        """The whole page, for `mpdoctor explain` and SARIF help."""
        parts = [f"# {title}", self.summary]
        parts += [f"## {name}\n\n{self.sections[name]}" for name in HEADINGS if self.sections.get(name)]
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What a rule's `check` yields; the engine adds code, slug, and the rule's defaults.

    `severity`, `confidence` and `cause` override the rule's own where one place deserves another.
    `setting` is the setting to blame, for rules over configs: it gives place and identity, and a
    framework's default, which nobody wrote, is one severity lower.
    """

    message: str
    at: Location | None = None
    setting: Setting[Any] | None = None
    evidence: tuple[Evidence, ...] = ()
    remedy: Remedy | None = None
    severity: Severity | None = None
    confidence: Confidence | None = None
    cause: str | None = None
    related: tuple[FileSpan, ...] = ()
    identity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[S]):
    """A rule over subjects of type `S`.

    Attributes:
        code: stable code, prefix and three digits.
        severity: how bad a hit is, unless the hit says otherwise.
        confidence: how sure a hit is, unless the hit says otherwise.
        cause: id of the cause that a hit points to, or None.
        needs: names of the subject's fields that must be known; where one is not, the rule is
            listed as skipped with that reason instead of running.
        check: yields a `Hit` for each fault, and an `Exclusion` for a cause that a fact rules out.
        slug, doc: filled in by `load`.
    """

    code: str
    severity: Severity
    check: Callable[[S], Iterator[Hit | Exclusion]]
    confidence: Confidence = Confidence.HIGH
    cause: str | None = None
    needs: tuple[str, ...] = ()
    slug: str = ""
    doc: RuleDoc = field(default_factory=lambda: RuleDoc(summary="", sections={}))

    def finding(self, hit: Hit) -> Finding:
        """The finding that a hit of this rule stands for."""
        severity, blamed = hit.severity or self.severity, hit.setting
        return Finding(
            code=self.code,
            slug=self.slug,
            severity=severity.lowered() if blamed and blamed.origin is Origin.DEFAULT else severity,
            confidence=hit.confidence or self.confidence,
            message=hit.message,
            location=hit.at or (blamed.at if blamed else None),
            cause=hit.cause or self.cause,
            evidence=hit.evidence,
            remedy=hit.remedy,
            related=hit.related,
            identity=hit.identity or (str(blamed.value) if blamed else ""),
        )


class RuleDefinitionError(Exception):
    """A rule's module is not a valid rule: a bug of whoever wrote it, told with the module's name."""


@cache
def load(package: str) -> tuple[Rule[Any], ...]:
    """All rules of a package (and of its subpackages), sorted by code.

    Raises RuleDefinitionError on a module without `RULE` or docstring, and on a code used twice.
    """
    rules: dict[str, Rule[Any]] = {}
    for module in modules(package):
        rule = getattr(module, "RULE", None)
        if not isinstance(rule, Rule):
            raise RuleDefinitionError(f"{module.__name__} exports no RULE")
        if not module.__doc__:
            raise RuleDefinitionError(f"{module.__name__} has no docstring")
        if rule.code in rules:
            raise RuleDefinitionError(f"{module.__name__}: code {rule.code} is already used by {rules[rule.code].slug}")
        slug = module.__name__.rpartition(".")[2].strip("_").replace("_", "-")
        rules[rule.code] = replace(rule, slug=slug, doc=RuleDoc.parse(module.__doc__))
    return tuple(rules[code] for code in sorted(rules))


def modules(package: str) -> list[Any]:
    """The modules of a package folder, imported, subpackages included; sorted by name."""
    root = importlib.import_module(package)
    names = sorted(info.name for info in pkgutil.walk_packages(root.__path__, f"{package}.") if not info.ispkg)
    return [importlib.import_module(name) for name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something that was not looked at, and why. "Clean" and "not looked at" never print alike."""

    what: str
    why: str
    needless: bool = False
    """Whether nothing is missed by it: it does not apply, or what it would tell is settled already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A rule, detector or experiment that raised: a bug of mpdoctor; the others still ran."""

    what: str
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class RuleRun:
    """What running a set of rules over one subject gave."""

    findings: tuple[Finding, ...]
    exclusions: tuple[Exclusion, ...]
    skipped: tuple[Skipped, ...]
    crashes: tuple[Crash, ...]


def run(rules: Iterable[Rule[S]], subject: S, known: Callable[[S, str], bool]) -> RuleRun:
    """Run each rule over `subject`.

    `known(subject, field)` says whether a field named in `Rule.needs` has a value. A rule that
    raises becomes a `Crash`; the rest run.
    """
    findings: list[Finding] = []
    exclusions: list[Exclusion] = []
    skipped: list[Skipped] = []
    crashes: list[Crash] = []
    for rule in rules:
        missing = [name for name in rule.needs if not known(subject, name)]
        if missing:
            skipped.append(Skipped(what=rule.code, why=f"unknown: {', '.join(missing)}"))
            continue
        try:
            for result in rule.check(subject):
                if isinstance(result, Exclusion):
                    exclusions.append(result)
                else:
                    findings.append(rule.finding(result))
        except Exception as error:
            crashes.append(Crash(what=rule.code, error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc()))
    return RuleRun(tuple(findings), tuple(exclusions), tuple(skipped), tuple(crashes))


def selected(code: str, slug: str, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> bool:
    """Whether a rule is on. Entries are codes, code prefixes (`CFG2`) or slugs; `ignore` wins."""

    def matches(entries: Iterable[str]) -> bool:
        return any(code.startswith(entry) or slug == entry for entry in entries)

    select = tuple(select)
    return (not select or matches(select)) and not matches(ignore)
