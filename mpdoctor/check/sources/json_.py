"""JSON, and what readers of training configs take for JSON.

DeepSpeed parses its file with hjson: comments, trailing commas, unquoted keys and strings are legal
there. Python writes bare `NaN` and `Infinity`. All that is read, and remembered as a leniency, so that a
rule can tell it to users whose framework calls `json.load`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from itertools import accumulate
from typing import Any

from mpdoctor.check.sources.node import MAX_DEPTH, MAX_NODES, Document, Duplicate, Node, Scalar
from mpdoctor.check.sources.source import Source
from mpdoctor.core.errors import UnreadableInput

LARGE = 256 << 10
"""Above this (logs in `trainer_state.json`) the standard library's parser is used, which knows no places."""

_SPACE = re.compile(r"\s*")
_COMMENT = re.compile(r"(?:#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SINGLE = re.compile(r"'(?:[^'\\\n]|\\.)*'")
_TRIPLE = re.compile(r"'''(.*?)'''", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?(?=[\s,\]}#/]|$)")
_LOOSE_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)([eE][-+]?\d+)?(?=[\s,\]}#/]|$)")
_WORD = re.compile(r"-?[A-Za-z_$][\w$.-]*")
_QUOTELESS = re.compile(r"[^\n,\]}#]+")
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_LENIENT_WORDS: dict[str, Scalar] = {
    "True": True,
    "False": False,
    "None": None,
    "NaN": float("nan"),
    "nan": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def parse(text: str, path: str) -> list[Document]:
    """The document of a JSON text; empty for an empty text."""
    if not text.strip():
        return []
    if len(text) > LARGE:
        return [_without_places(text, path)]
    return [_Scanner(text, path).document()]


def sniff(text: str) -> bool:
    """Whether it starts like an object."""
    return text.lstrip().startswith(("{", "//", "/*"))


class _Scanner:
    """A recursive descent over the text; `at` is the next character."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.at = text, path, 0
        self.starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self.count = 0
        self.duplicates: list[Duplicate] = []
        self.leniencies: list[tuple[int, str]] = []

    def document(self) -> Document:
        self.space()
        root = self.value(1)
        self.space()
        if self.at < len(self.text):
            raise self.expected("the end of the file")
        return Document(
            path=self.path, syntax="json", root=root, text=self.text, duplicates=self.duplicates,
            leniencies=[(self.node(None, offset).span(), what) for offset, what in self.leniencies],
        )  # fmt: skip

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.refuse(f"nested deeper than {MAX_DEPTH} levels")
        start, char = self.at, self.text[self.at : self.at + 1]
        if char == "{":
            return self.object(depth)
        if char == "[":
            return self.array(depth)
        if char in "\"'" and char:
            return self.node(self.string(), start, self.text[start : self.at], quoted=True)
        return self.bare(start)

    def object(self, depth: int) -> Node:
        made = self.node({}, self.at)
        members = made.mapping
        self.at += 1
        while self.more("}", "a comma or `}`", first=not members):
            start, name = self.at, self.key()
            self.space()
            if self.text[self.at : self.at + 1] != ":":
                raise self.expected(f"a colon after the key {name!r}")
            self.at += 1
            self.space()
            child = self.value(depth + 1)
            child.line, child.column = self.place(start)
            if name in members:
                self.duplicates.append(Duplicate(name, members[name].span(name), child.span(name), child.same_scalar(members[name])))
            members[name] = child
        return made

    def array(self, depth: int) -> Node:
        made = self.node([], self.at)
        self.at += 1
        while self.more("]", "a comma or `]`", first=not made.items):
            made.items.append(self.value(depth + 1))
        return made

    def more(self, close: str, expected: str, *, first: bool) -> bool:
        """Step over separators; False (and past the bracket) at the end of the collection."""
        before = self.at
        self.space()
        newline = "\n" in self.text[before : self.at]
        comma = not first and self.text[self.at : self.at + 1] == ","
        if comma:
            offset, self.at = self.at, self.at + 1
            self.space()
        if self.text[self.at : self.at + 1] == close:
            if comma:
                self.leniencies.append((offset, "a trailing comma"))
            self.at += 1
            return False
        if not first and not comma:
            if not newline or self.at >= len(self.text):
                raise self.expected(expected)
            self.leniencies.append((self.at, "a missing comma"))
        return True

    def key(self) -> str:
        char = self.text[self.at : self.at + 1]
        if char in "\"'" and char:
            return self.string()
        match = _WORD.match(self.text, self.at)
        if not match:
            raise self.expected("a key in double quotes")
        self.leniencies.append((self.at, "a key without quotes"))
        self.at = match.end()
        return match[0]

    def string(self) -> str:
        start = self.at
        if match := _TRIPLE.match(self.text, start):
            self.leniencies.append((start, "a string in triple quotes"))
            self.at = match.end()
            return match[1]
        single = self.text[start] == "'"
        match = (_SINGLE if single else _STRING).match(self.text, start)
        if not match:
            raise self.expected("the closing quote of this string on the same line")
        self.at = match.end()
        if single:
            self.leniencies.append((start, "a string in single quotes"))
            return match[0][1:-1].replace("\\'", "'")
        try:
            return str(json.loads(match[0], strict=False))
        except ValueError:
            raise self.refuse("an escape in this string is not one of JSON's", start) from None

    def bare(self, start: int) -> Node:
        """A number, a word, or hjson's string without quotes."""
        if match := _NUMBER.match(self.text, start):
            self.at = match.end()
            value: Scalar = _integer(match[0]) if not match[1] and not match[2] else float(match[0])
            return self.node(value, start, match[0])
        if match := _LOOSE_NUMBER.match(self.text, start):
            self.at = match.end()
            self.leniencies.append((start, "a number in a form that JSON does not have"))
            return self.node(float(match[0]), start, match[0])
        match = _WORD.match(self.text, start)
        if match and match[0] in _WORDS:
            self.at = match.end()
            return self.node(_WORDS[match[0]], start, match[0])
        if match and match[0] in _LENIENT_WORDS:
            self.at = match.end()
            self.leniencies.append((start, f"the bare word {match[0]}"))
            return self.node(_LENIENT_WORDS[match[0]], start, match[0])
        quoteless = _QUOTELESS.match(self.text, start)
        if not match or not quoteless:
            raise self.expected("a value")
        self.at = quoteless.end()
        self.leniencies.append((start, "a string without quotes"))
        return self.node(quoteless[0].strip(), start, quoteless[0].strip())

    def space(self) -> None:
        """Skip white space and comments."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches nothing at least
            if self.text[self.at : self.at + 1] not in ("#", "/") or not (comment := _COMMENT.match(self.text, self.at)):
                return
            self.leniencies.append((self.at, "a comment"))
            self.at = comment.end()

    def node(self, value: Any, offset: int, raw: str | None = None, *, quoted: bool = False) -> Node:
        self.count += 1
        if self.count > MAX_NODES:
            raise self.refuse(f"more than {MAX_NODES:,} values, which no training config has")
        line, column = self.place(offset)
        if quoted and raw is not None and isinstance(value, str):
            raw = value
        return Node(value, self.path, line, column, line, column, raw, quoted)

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def expected(self, what: str) -> UnreadableInput:
        found = self.text[self.at : self.at + 12].split("\n")[0].strip()
        return self.refuse(f"expected {what}, found {found!r}" if found else f"expected {what}, found the end of the line or file")

    def refuse(self, why: str, offset: int | None = None) -> UnreadableInput:
        line, column = self.place(min(self.at if offset is None else offset, len(self.text)))
        return UnreadableInput(f"{self.path}:{line}:{column}: not valid JSON: {why}")


def _integer(text: str) -> int | float:
    return int(text) if len(text) < 400 else float("inf")


def _without_places(text: str, path: str) -> Document:
    try:
        value = json.loads(text)
        return Document(path=path, syntax="json", root=_plain(value, path, 1), text=text)
    except RecursionError:
        raise UnreadableInput(f"{path}: not valid JSON: nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise UnreadableInput(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from None
    except ValueError as error:  # an integer with thousands of digits
        raise UnreadableInput(f"{path}: not valid JSON: {error}") from None


def _plain(value: Any, path: str, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise UnreadableInput(f"{path}: not valid JSON: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return Node({key: _plain(item, path, depth + 1) for key, item in value.items()}, path, 0, 0)
    if isinstance(value, list):
        return Node([_plain(item, path, depth + 1) for item in value], path, 0, 0)
    return Node(value, path, 0, 0, raw=str(value), quoted=isinstance(value, str))


SOURCE = Source(suffixes=(".json", ".jsonc", ".json5", ".hjson"), parse=parse, sniff=sniff)
