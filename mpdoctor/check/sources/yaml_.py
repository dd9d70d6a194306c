"""YAML, read as PyYAML's safe loader reads it, without building anything that a tag names.

The tree is built from libyaml's events: no recursion, aliases share their node (so a "billion laughs"
file costs what its text costs), duplicate keys are kept apart, and merge keys (`<<`) are followed.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from mpdoctor.check.sources.node import MAX_DEPTH, MAX_NODES, Document, Duplicate, Node, Scalar
from mpdoctor.check.sources.source import Source
from mpdoctor.core.errors import UnreadableInput

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_INT = re.compile(r"[-+]?(0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(:[0-5]?[0-9])+)")
_FLOAT = re.compile(
    r"[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|\.(inf|Inf|INF))"
    r"|\.(nan|NaN|NAN)"
)


def parse(text: str, path: str) -> list[Document]:
    """The documents of a YAML stream that hold anything."""
    try:
        return _Builder(text, path).documents()
    except yaml.YAMLError as error:
        raise _unreadable(error, path, text) from None


def resolve_plain(text: str) -> Scalar:
    """A plain scalar as YAML 1.1 (PyYAML) reads it: `1.0e-5` is a number there, `1e-5` is a string, `no` is False."""
    if text in _NULL:
        return None
    if text.lower() in _BOOL and (text.islower() or text.isupper() or text.istitle()):
        return _BOOL[text.lower()]
    if text[0] not in "+-.0123456789":
        return text
    try:
        if _INT.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return _float(text.replace("_", "").lower())
    except ValueError:  # `0_` and the like: PyYAML stops there; to a reader it is text
        return text
    return text


def _integer(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    text = text.lstrip("+-")
    if ":" in text:
        total = 0
        for part in text.split(":"):
            total = total * 60 + int(part)
        return sign * total
    if len(text) > 400:
        raise ValueError("too long for a number")
    base = 16 if text.startswith("0x") else 2 if text.startswith("0b") else 8 if text.startswith("0") and len(text) > 1 else 10
    return sign * int(text, base)


def _float(text: str) -> float:
    sign = -1.0 if text[0] == "-" else 1.0
    text = text.lstrip("+-")
    if text == ".inf":
        return sign * float("inf")
    if text == ".nan":
        return float("nan")
    if ":" in text:
        total = 0.0
        for part in text.split(":"):
            total = total * 60 + float(part)
        return sign * total
    return sign * float(text)


class _Builder:
    """Builds nodes from events with a stack of its own."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path = text, path
        self.anchors: dict[str, Node] = {}
        self.shared: set[int] = set()
        self.duplicates: list[Duplicate] = []
        self.count = 0

    def documents(self) -> list[Document]:
        found: list[Document] = []
        stack: list[_Open] = []
        for event in yaml.parse(self.text, Loader=_LOADER):
            match event:
                case yaml.ScalarEvent():
                    stack[-1].add(self.scalar(event))
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    if len(stack) > MAX_DEPTH:
                        raise self.refuse(event, f"nested deeper than {MAX_DEPTH} levels")
                    stack.append(_Open(self.collection(event), self))
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    done = stack.pop()
                    stack[-1].add(done.finish())
                case yaml.AliasEvent():
                    stack[-1].add(self.alias(event, stack))
                case yaml.DocumentStartEvent():
                    self.anchors, self.shared, self.duplicates = {}, set(), []
                    stack = [_Open(Node([], self.path, 1, 1), self)]
                case yaml.DocumentEndEvent():
                    root = stack[0].node.items[0]
                    if root.value is not None:
                        found.append(Document(path=self.path, syntax="yaml", root=root, text=self.text, duplicates=self.duplicates))
        return found

    def scalar(self, event: yaml.ScalarEvent) -> Node:
        plain = event.style in (None, "") and (event.implicit[0] or event.tag == "!")
        value: Scalar = resolve_plain(event.value) if plain and event.implicit[0] else event.value
        if event.tag and not event.implicit[0]:
            value = _tagged(event.tag, event.value)
        return self.node(event, value, event.value, quoted=event.style in ("'", '"'))

    def collection(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> Node:
        return self.node(event, {} if isinstance(event, yaml.MappingStartEvent) else [], None)

    def node(self, event: Any, value: dict[str, Node] | list[Node] | Scalar, raw: str | None, *, quoted: bool = False) -> Node:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        made = Node(value, self.path, line, column, line, column, raw, quoted)
        self.spend(1, made)
        if event.anchor is not None:
            self.anchors[event.anchor] = made
            self.shared.add(id(made))
        return made

    def spend(self, values: int, at: Node) -> None:
        """Count values, merged ones too: a few merge keys can multiply a large mapping."""
        self.count += values
        if self.count > MAX_NODES:
            raise UnreadableInput(f"{self.path}:{at.line}:{at.column}: more than {MAX_NODES:,} values, which no training config has")

    def alias(self, event: yaml.AliasEvent, stack: list[_Open]) -> Node:
        target = self.anchors.get(event.anchor or "")
        if target is None:
            raise self.refuse(event, f"the alias *{event.anchor} stands before its anchor")
        if any(open_.node is target for open_ in stack):
            raise self.refuse(event, f"the anchor &{event.anchor} contains itself")
        return target

    def refuse(self, event: Any, why: str) -> UnreadableInput:
        return UnreadableInput(f"{self.path}:{event.start_mark.line + 1}:{event.start_mark.column + 1}: {why}")


class _Open:
    """A collection whose end has not come yet."""

    __slots__ = ("builder", "key", "merges", "node", "places")

    def __init__(self, node: Node, builder: _Builder) -> None:
        self.node, self.builder = node, builder
        self.key: Node | None = None
        self.merges: list[Node] = []
        self.places: dict[str, Node] = {}

    def add(self, child: Node) -> None:
        target = self.node.value
        if isinstance(target, list):
            target.append(child)
        elif self.key is None:
            self.key = child
        else:
            key, self.key = self.key, None
            self.put(key, child)

    def put(self, key: Node, child: Node) -> None:
        if key.raw == "<<" and not key.quoted:
            self.merges.extend(child.items if child.is_sequence else [child])
            return
        name = key.raw if key.raw is not None else f"<{type(key.value).__name__}>"
        if name in self.places:
            first, again = self.places[name], key
            self.builder.duplicates.append(Duplicate(name, first.span(name), again.span(name), child.same_scalar(self.node.mapping[name])))
        self.places[name] = key
        # An alias shares its node with the anchor's place, so it is copied (not its children) before it gets a place of its own.
        if child.line != child.value_line or child.column != child.value_column or id(child) in self.builder.shared:
            child = Node(child.value, child.source, 0, 0, child.value_line, child.value_column, child.raw, child.quoted)
        child.line, child.column = key.line, key.column
        self.node.mapping[name] = child

    def finish(self) -> Node:
        for merged in self.merges:
            self.builder.spend(len(merged.mapping), merged)
            for name, child in merged.mapping.items():
                self.node.mapping.setdefault(name, child)
        return self.node


def _tagged(tag: str, text: str) -> Scalar:
    """A scalar with an explicit tag: YAML's own types are read, any other tag is ignored (never constructed)."""
    if tag.endswith((":int", ":float", ":bool", ":null")):
        value = resolve_plain(text)
        if tag.endswith(":float"):
            try:
                return float(text)
            except ValueError:
                return value
        return value
    return text


def _unreadable(error: yaml.YAMLError, path: str, text: str) -> UnreadableInput:
    """One message with file, line, column, what was wrong and what was expected."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
    lines = text.split("\n")
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    hint = f"The parser was {context}." if context else None
    if "\t" in line[: (mark.column + 1) if mark else 0]:
        hint = "YAML indents with spaces; a tab stands here."
    return UnreadableInput(f"{place}: not valid YAML: {problem}", hint)


SOURCE = Source(suffixes=(".yaml", ".yml"), parse=parse)
