"""TOML: values by the standard library, places by a locator of our own (tomllib tells none)."""

from __future__ import annotations

import re
from typing import Any

from mpdoctor.check.sources.node import MAX_DEPTH, MAX_NODES, Document, Node, Scalar
from mpdoctor.check.sources.source import Source
from mpdoctor.core.errors import UnreadableInput

_TABLE = re.compile(r"^[ \t]*\[(\[)?(?P<name>[^\[\]\n]+)\]\]?[ \t]*(#.*)?$")
_KEY = re.compile(r"""[ \t]*(?P<key>(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:[ \t]*\.[ \t]*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*)[ \t]*=[ \t]*""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'""")
_SKIP = re.compile(r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL)
_POSITION = re.compile(r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$", re.DOTALL)


def parse(text: str, path: str) -> list[Document]:
    """The document of a TOML text; empty for a text without keys."""
    import tomllib

    _guard_depth(text, path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(error, path, text) from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise UnreadableInput(f"{path}: not valid TOML: {error}") from None
    if not values:
        return []
    places = _places(text)
    budget = [MAX_NODES]
    return [Document(path=path, syntax="toml", root=_node(values, "", path, places, (1, 1, None), budget), text=text)]


def sniff(text: str) -> bool:
    """Whether its first statement is a table header or a TOML assignment."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return bool(_TABLE.match(line) or _KEY.match(line))
    return False


_Place = tuple[int, int, str | None]


def _node(value: Any, key: str, path: str, places: dict[str, _Place], inherited: _Place, budget: list[int]) -> Node:
    """Values with places. What has no place of its own (inside an inline table or a list) gets its parent's."""
    budget[0] -= 1
    if budget[0] < 0:
        raise UnreadableInput(f"{path}: more than {MAX_NODES:,} values, which no training config has")
    place = places.get(key, (inherited[0], inherited[1], None))
    prefix = f"{key}." if key else ""
    if isinstance(value, dict):
        members = {name: _node(item, f"{prefix}{name}", path, places, place, budget) for name, item in value.items()}
        return Node(members, path, place[0], place[1], *place[:2])
    if isinstance(value, list):
        return Node([_node(item, f"{prefix}{index}", path, places, place, budget) for index, item in enumerate(value)], path, place[0], place[1])
    scalar: Scalar = value if isinstance(value, (str, int, float, bool)) else str(value)
    return Node(scalar, path, place[0], place[1], *place[:2], raw=str(value) if place[2] is None else place[2], quoted=isinstance(value, str))


def _places(text: str) -> dict[str, _Place]:
    """Dotted path -> line, column, text of the value, for tables and assignments at the start of a line."""
    places: dict[str, _Place] = {}
    prefix: list[str] = []
    arrays: dict[str, int] = {}
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        if table := _TABLE.match(line):
            prefix = _parts(table["name"])
            name = ".".join(prefix)
            if table[1]:
                arrays[name] = arrays.get(name, -1) + 1
                prefix = [*prefix, str(arrays[name])]
            places.setdefault(".".join(prefix), (number + 1, line.index("[") + 1, None))
        elif match := _KEY.match(line):
            last, raw = _value(lines, number, match.end())
            places.setdefault(".".join([*prefix, *_parts(match["key"])]), (number + 1, match.start("key") + 1, raw))
            number = last
        number += 1
    return places


def _value(lines: list[str], number: int, column: int) -> tuple[int, str]:
    """The last line of the value that starts here, and its text."""
    first = number
    text = lines[number][column:]
    while True:
        rest = _SKIP.sub("", text)
        open_string = rest.count('"""') % 2 or rest.count("'''") % 2
        if not open_string and rest.count("[") + rest.count("{") <= rest.count("]") + rest.count("}"):
            break
        # 400 lines are longer than any real value; a locator need not follow further.
        if number + 1 >= len(lines) or number - first > 400:
            break
        number += 1
        text += "\n" + lines[number]
    bare = re.match(r"""\s*("[^"\n]*"|'[^'\n]*'|[^#\n]*)""", text)
    raw = bare[1].strip() if bare else text.strip()
    return number, raw.strip("\"'") if raw[:1] in "\"'" else raw


def _parts(name: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(name)]


def _guard_depth(text: str, path: str) -> None:
    """Tomllib recurses: refuse brackets that nest deeper than any config before it sees them."""
    depth = 0
    for number, line in enumerate(text.split("\n"), 1):
        if "[" not in line and "{" not in line and "]" not in line and "}" not in line:
            if line.count(".") > MAX_DEPTH * 2:
                raise UnreadableInput(f"{path}:{number}:1: nested deeper than {MAX_DEPTH} levels")
            continue
        for char in _SKIP.sub("", line):
            depth += (char in "[{") - (char in "]}")
            if depth > MAX_DEPTH:
                raise UnreadableInput(f"{path}:{number}:1: nested deeper than {MAX_DEPTH} levels")
        depth = max(depth, 0)


def _unreadable(error: ValueError, path: str, text: str) -> UnreadableInput:
    match = _POSITION.match(str(error))
    if match and match["line"]:
        return UnreadableInput(f"{path}:{match['line']}:{match['column']}: not valid TOML: {match['what']}")
    if match:
        return UnreadableInput(f"{path}:{text.count(chr(10)) + 1}:1: not valid TOML: {match['what']} at the end of the file")
    return UnreadableInput(f"{path}: not valid TOML: {error}")


SOURCE = Source(suffixes=(".toml",), parse=parse, sniff=sniff)
