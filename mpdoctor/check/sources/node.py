"""The tree that all sources make: mappings, sequences and scalars, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mpdoctor.core.location import FileSpan

Scalar = str | int | float | bool | None
MAX_DEPTH = 100
"""Deepest nesting that is read. Real configs stay under 15."""
MAX_NODES = 200_000
"""Most nodes of one file. Real configs stay under 5,000."""


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A value in a file. `value` is a dict of nodes, a list of nodes, or a scalar.

    `line` and `column` (from 1) are the key's for a mapping's value, else the value's own;
    `value_line` and `value_column` are always the value's. `raw` is a scalar's text as written,
    `quoted` whether quotes stood around it. `source` is the file, which differs from the document's
    own path for included parts. Line 0 is "not known" (a large log read without places).
    """

    value: dict[str, Node] | list[Node] | Scalar
    source: str
    line: int
    column: int
    value_line: int = 0
    value_column: int = 0
    raw: str | None = None
    quoted: bool = False
    pending: str | None = None
    """Why the value is not known yet, for an expression that is not evaluated."""

    @property
    def is_mapping(self) -> bool:
        """Whether it holds named values."""
        return isinstance(self.value, dict)

    @property
    def is_sequence(self) -> bool:
        """Whether it holds a list."""
        return isinstance(self.value, list)

    @property
    def mapping(self) -> dict[str, Node]:
        """The named values; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """The list's elements; empty for anything else."""
        return self.value if isinstance(self.value, list) else []

    @property
    def scalar(self) -> Scalar:
        """The scalar; None for mappings and sequences."""
        return None if isinstance(self.value, (dict, list)) else self.value

    def get(self, path: str) -> Node | None:
        """The node at a dotted path (`optimizer.params.lr`; numbers index lists), or None."""
        node: Node | None = self
        for part in path.split("."):
            if node is None:
                return None
            if isinstance(node.value, dict):
                node = node.value.get(part)
            elif isinstance(node.value, list) and part.isdecimal() and int(part) < len(node.value):
                node = node.value[int(part)]
            else:
                return None
        return node

    def span(self, key: str | None = None) -> FileSpan:
        """Its place, as reports print it."""
        return FileSpan(file=self.source, line=self.line or None, column=self.column or None, key=key)

    def walk(self, prefix: str = "") -> Iterator[tuple[str, Node]]:
        """All nodes below with their dotted paths. A node that is shared (a YAML alias) is visited once."""
        seen: set[int] = set()
        stack: list[tuple[str, Node]] = [(prefix, self)]
        while stack:
            path, node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if path:
                yield path, node
            children = node.value.items() if isinstance(node.value, dict) else enumerate(node.items)
            stack.extend(reversed([(f"{path}.{key}" if path else str(key), child) for key, child in children]))


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that stands twice in one mapping: dotted path, where first, where again."""

    key: str
    first: FileSpan
    again: FileSpan


@dataclass(slots=True, kw_only=True, eq=False)
class Document:
    """One parsed file (or one document of a multi-document file)."""

    path: str
    syntax: str
    """Name of the source that read it: `yaml`, `json`, `toml`, `python`, `arguments`."""
    root: Node
    text: str = ""
    constructor: str = ""
    """For keyword arguments in Python and flags on a command line: what they are given to (`TrainingArguments`, `accelerate launch`)."""
    duplicates: list[Duplicate] = field(default_factory=list)
    leniencies: list[tuple[FileSpan, str]] = field(default_factory=list)
    """Where the text is not strictly its syntax and was read all the same (comments in JSON...)."""
    missing: list[tuple[FileSpan, str]] = field(default_factory=list)
    """Includes that could not be followed: where, and why."""

    @property
    def keys(self) -> frozenset[str]:
        """Top-level keys."""
        return frozenset(self.root.mapping)

    def get(self, path: str) -> Node | None:
        """The node at a dotted path, or None."""
        return self.root.get(path)
