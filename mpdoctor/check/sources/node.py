"""The tree that all sources make: mappings, sequences and scalars, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.core.location import FileSpan

Scalar = str | int | float | bool | None
MAX_DEPTH = 100
"""Deepest nesting that is read. Real configs stay under 15."""
MAX_NODES = 200_000
"""Most nodes of one file. Real configs stay under 5,000."""


class Node:
    """A value in a file. `value` is a dict of nodes, a list of nodes, or a scalar.

    Attributes:
        value: what stands there.
        source: the file, which differs from the document's own path for included parts.
        line, column: from 1; the key's for a mapping's value, else the value's own. 0 is "not known" (a large log
            read without places).
        value_line, value_column: always the value's.
        raw: a scalar's text as written.
        quoted: whether quotes stood around it.
        pending: why the value is not known yet, for an expression that is not evaluated.
    """

    # No dataclass: making one costs a millisecond at every start of the program, and these are made by the thousand.
    __slots__ = ("column", "line", "pending", "quoted", "raw", "source", "value", "value_column", "value_line")

    def __init__(
        self,
        value: dict[str, Node] | list[Node] | Scalar,
        source: str,
        line: int,
        column: int,
        value_line: int = 0,
        value_column: int = 0,
        raw: str | None = None,
        quoted: bool = False,
        pending: str | None = None,
    ) -> None:
        self.value = value
        self.source = source
        self.line, self.column = line, column
        self.value_line, self.value_column = value_line, value_column
        self.raw, self.quoted, self.pending = raw, quoted, pending

    def with_value(self, value: dict[str, Node] | list[Node] | Scalar) -> Node:
        """Another value at the same place."""
        return Node(value, self.source, self.line, self.column, self.value_line, self.value_column, self.raw, self.quoted, self.pending)

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

    def same_scalar(self, other: Node) -> bool:
        """Whether both are the same scalar."""
        return not isinstance(self.value, (dict, list)) and not isinstance(other.value, (dict, list)) and self.value == other.value

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


class Duplicate(NamedTuple):
    """A key that stands twice in one mapping: its name, where first, where again, and whether with the same scalar."""

    key: str
    first: FileSpan
    again: FileSpan
    same: bool = False


class Document:
    """One parsed file (or one document of a multi-document file).

    Attributes:
        path: the file.
        syntax: what it is written in: `yaml`, `json`, `toml`, `python`, `notebook`, `arguments`, `pickle`, `checkpoint`.
        root: its tree.
        text: its text.
        constructor: for keyword arguments in Python and flags on a command line: what they are given to
            (`TrainingArguments`, `accelerate`).
        duplicates: keys that stand twice.
        leniencies: where the text is not strictly its syntax and was read all the same (comments in JSON...).
        missing: includes that could not be followed: where, and why.
        incomplete: why a key that is not here may be set all the same, so that no default can be told; empty when the document is all there is.
        parts: files that were merged into this one.
        rows: for a notebook: what its reader calls a place (`cell 3, line 2`), by line and column of the file.
    """

    __slots__ = ("constructor", "duplicates", "incomplete", "leniencies", "missing", "parts", "path", "root", "rows", "syntax", "text")

    def __init__(
        self,
        *,
        path: str,
        syntax: str,
        root: Node,
        text: str = "",
        constructor: str = "",
        duplicates: list[Duplicate] | None = None,
        leniencies: list[tuple[FileSpan, str]] | None = None,
        missing: list[tuple[FileSpan, str]] | None = None,
        incomplete: str = "",
        rows: dict[tuple[int, int], str] | None = None,
    ) -> None:
        self.incomplete, self.rows = incomplete, rows or {}
        self.path, self.syntax, self.root, self.text, self.constructor = path, syntax, root, text, constructor
        self.duplicates = duplicates or []
        self.leniencies = leniencies or []
        self.missing = missing or []
        self.parts: list[Document] = []

    def with_root(self, root: Node, missing: list[tuple[FileSpan, str]] | None = None) -> Document:
        """The same document over another tree."""
        return Document(
            path=self.path, syntax=self.syntax, root=root, text=self.text, constructor=self.constructor, duplicates=self.duplicates,
            leniencies=self.leniencies, missing=self.missing if missing is None else missing, incomplete=self.incomplete, rows=self.rows,
        )  # fmt: skip

    @property
    def keys(self) -> frozenset[str]:
        """Top-level keys."""
        return frozenset(self.root.mapping)

    def get(self, path: str) -> Node | None:
        """The node at a dotted path, or None."""
        return self.root.get(path)
