"""From a path to parsed documents."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from mpdoctor.check.sources.node import Document
from mpdoctor.check.sources.source import Source, suffix_of
from mpdoctor.check.sources.text import read_text
from mpdoctor.core.errors import UnreadableInput


@cache
def source_names() -> tuple[str, ...]:
    """Module names of all sources (a source's module ends in `_`), found by scanning the folder."""
    package = importlib.import_module("mpdoctor.check.sources")
    return tuple(sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.name.endswith("_")))


@cache
def source(name: str) -> Source:
    """The source in a module of this folder."""
    module: ModuleType = importlib.import_module(f"mpdoctor.check.sources.{name}")
    found = module.SOURCE
    assert isinstance(found, Source)
    return found


def suffixes() -> frozenset[str]:
    """All suffixes that some source reads."""
    return frozenset(suffix for name in source_names() for suffix in source(name).suffixes)


def load(path: str, text: str | None = None) -> list[Document]:
    """The documents of a file (`-` is stdin); an empty list for one that holds nothing.

    Raises UnreadableInput with file, line, column and what was expected.
    """
    text = read_text(path) if text is None else text
    if not text.strip():
        return []
    return _source_of(path, text).parse(text, path)


def _source_of(path: str, text: str) -> Source:
    suffix = suffix_of(path)
    # The usual suffixes first: scanning the folder imports every source.
    for name in ("yaml_", "json_", "toml_"):
        if suffix and suffix in _USUAL.get(name, ()):
            return source(name)
    for name in source_names():
        if suffix and suffix in source(name).suffixes:
            return source(name)
    for name in source_names():
        if source(name).sniff(text):
            return source(name)
    if suffix in ("", ".txt", ".conf", ".cfg", ".config") or path == "-":
        return source("yaml_")
    raise UnreadableInput(
        f"{path}: the suffix {suffix} belongs to no config format that mpdoctor reads",
        f"It reads {', '.join(sorted(suffixes()))}, and text without a suffix.",
    )


_USUAL = {"yaml_": (".yaml", ".yml"), "json_": (".json",), "toml_": (".toml",)}
