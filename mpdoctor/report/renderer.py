"""What an output format is, and how formats are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from mpdoctor.core.errors import UsageError
from mpdoctor.core.gate import FailOn
from mpdoctor.core.record import dataclass
from mpdoctor.core.report import Report
from mpdoctor.core.rule import RuleDoc
from mpdoctor.report import formats
from mpdoctor.report.legible import legible


def no_pages(code: str) -> RuleDoc | None:
    """A library of rule pages without pages."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """What a renderer may know besides the report.

    Attributes:
        width: columns of the place that shows the text.
        color: whether ANSI colours are wanted. Nothing may be told by colour alone.
        ascii: whether only ASCII characters may be used.
        quiet: whether only the answer is wanted, without what led to it.
        fail_on: lowest severity that fails the gate, for formats that tell failures from remarks.
        rule_page: a rule's documentation by code, for formats that carry it.
    """

    width: int = 80
    color: bool = False
    ascii: bool = False
    quiet: bool = False
    fail_on: FailOn = FailOn.ERROR
    rule_page: Callable[[str], RuleDoc | None] = no_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """One output format.

    Attributes:
        render: the whole document, ending with a newline. Must not raise for any report.
        suffix: usual end of a file's name, with the dot.
        for_reading: whether a terminal is a sensible place for it.
        check: raises `MpdoctorError` when something that the format needs is missing; called before long work starts.
    """

    render: Callable[[Report, RenderOptions], str]
    suffix: str
    for_reading: bool = True
    check: Callable[[], None] = lambda: None


@cache
def format_names() -> tuple[str, ...]:
    """Names of all output formats, found by file name: no format is imported."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(formats.__path__)))


def load(name: str) -> Renderer:
    """The output format called `name`. Raises UsageError for an unknown one."""
    if name not in format_names():
        raise UsageError(f"unknown output format {name!r}", f"choose one of: {', '.join(format_names())}")
    renderer = importlib.import_module(f"{formats.__name__}.{name}").RENDERER
    assert isinstance(renderer, Renderer), f"{name} exports no RENDERER"
    return replace(renderer, render=lambda report, options: as_text(renderer.render(legible(report), options)))


def as_text(document: str) -> str:
    """The document with lone surrogates (names of files that are not UTF-8) as backslash escapes, so that it can be written anywhere."""
    return document.encode("utf-8", "backslashreplace").decode("utf-8")
