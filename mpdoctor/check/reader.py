"""Typed settings out of a document: value, origin, place, and the text as written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from mpdoctor.check.dtypes import dtype_name
from mpdoctor.check.sources.node import Document, Node
from mpdoctor.core.location import FileSpan
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

Fields = dict[str, Any]
"""Part of a `TrainingConfig`: settings by field name."""

_MISSING: Any = object()
_REFERENCE = re.compile(r"\$\{\.*([A-Za-z_][\w.-]*)\}")
_NUMBER = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_TRUE = frozenset(("true", "yes", "on", "1"))
_FALSE = frozenset(("false", "no", "off", "0"))


class Reader:
    """Reads settings by dotted path.

    Each getter takes one or more paths (older and newer spellings); the first that holds a value
    counts. An absent or null key gives the default, with `note` saying which version it holds for;
    without a default, or where a value cannot be resolved (`auto`, `${...}`, `???`, a wrong type), the
    setting is unknown and its note says why.
    """

    def __init__(self, document: Document, *, siblings: Sequence[TrainingConfig] = (), version: str | None = None) -> None:
        self.document = document
        self.siblings = siblings
        self.version = version

    @property
    def path(self) -> str:
        """The file."""
        return self.document.path

    def node(self, *paths: str) -> Node | None:
        """The first node that stands at one of the paths and is not null, interpolation followed."""
        for path in paths:
            found = self.document.get(path)
            if found is not None and found.value is not None:
                return self._follow(found)
        return None

    def has(self, *paths: str) -> bool:
        """Whether one of the paths holds something other than null."""
        return self.node(*paths) is not None

    def number(self, *paths: str, default: float | None = _MISSING, note: str | None = None) -> Setting[float]:
        """A finite or infinite number; numeric text (`2e-5`, which PyYAML reads as a string) counts."""
        return self._read(paths, _number, default, note)

    def integer(self, *paths: str, default: int | None = _MISSING, note: str | None = None) -> Setting[int]:
        """A whole number."""
        return self._read(paths, _integer, default, note)

    def flag(self, *paths: str, default: bool | None = _MISSING, note: str | None = None) -> Setting[bool]:
        """A boolean; quoted `"true"` and 0/1 count."""
        return self._read(paths, _flag, default, note)

    def text(self, *paths: str, default: str | None = _MISSING, note: str | None = None) -> Setting[str]:
        """Text; numbers and booleans become their text."""
        return self._read(paths, _text, default, note)

    def dtype(self, *paths: str, default: str | None = _MISSING, note: str | None = None) -> Setting[str]:
        """A number format by its short name (`float16`, `torch.half` and `16` are `fp16`)."""
        return self._read(paths, _dtype, default, note)

    def constant(self, value: Any, note: str | None = None, key: str | None = None) -> Setting[Any]:
        """A default of the framework that no key sets; unknown where the document's `key` may be set elsewhere."""
        if key is not None and self.document.incomplete:
            return UNKNOWN
        return Setting(value, Origin.DEFAULT, FileSpan(file=self.path, key=key), None, note)

    def _read(self, paths: tuple[str, ...], convert: Callable[[Node], Any], default: Any, note: str | None) -> Setting[Any]:
        for path in paths:
            found = self.document.get(path)
            if found is None or found.value is None:
                continue
            node = self._follow(found)
            value = convert(node) if unresolved(node) is None else None
            at = node.span(path)
            if value is None:
                reason = unresolved(node) or f"not understood: {_shown(node)}"
                return Setting(None, Origin.UNKNOWN, at, node.raw, reason)
            via = None if node is found else f"through {found.raw} at {found.source}:{found.line}"
            return Setting(value, Origin.EXPLICIT, at, node.raw, via)
        if default is _MISSING or self.document.incomplete:
            return UNKNOWN
        return Setting(default, Origin.DEFAULT, FileSpan(file=self.path, key=paths[0]), None, note)

    def _follow(self, node: Node) -> Node:
        """The node that an interpolation (`${a.b}`) within the same document stands for."""
        for _ in range(10):
            reference = _REFERENCE.fullmatch(node.raw.strip()) if isinstance(node.value, str) and node.raw else None
            target = self.document.get(reference[1]) if reference else None
            if target is None or target is node:
                return node
            node = target
        return node


def unresolved(node: Node) -> str | None:
    """Why a scalar has no value yet, or None when it has one."""
    if node.pending:
        return node.pending
    if not isinstance(node.value, str):
        return None
    text = node.value.strip()
    if text == "auto":
        return "`auto`: filled in when the run starts"
    if text == "???":
        return "`???`: must be given on the command line"
    if "${" in text or "{{" in text:
        return "an interpolation that this file does not resolve"
    return None


def _shown(node: Node) -> str:
    return repr(node.raw[:40]) if node.raw is not None else "a mapping" if node.is_mapping else "a list"


def _number(node: Node) -> float | None:
    value = node.scalar
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _as_float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return _as_float(value.strip().replace("_", ""))
    return None


def _as_float(value: int | float | str) -> float | None:
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(result) else result


def _integer(node: Node) -> int | None:
    value = _number(node)
    return int(value) if value is not None and math.isfinite(value) and value == int(value) else None


def _flag(node: Node) -> bool | None:
    value = node.scalar
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, (int, float, str)) else ""
    return True if text in _TRUE else False if text in _FALSE else None


def _text(node: Node) -> str | None:
    value = node.scalar
    if value is None:
        return None
    return node.raw if node.raw is not None and not isinstance(value, bool) else str(value).lower() if isinstance(value, bool) else str(value)


def _dtype(node: Node) -> str | None:
    value = node.scalar
    return None if value is None or isinstance(value, bool) else dtype_name(str(value))
