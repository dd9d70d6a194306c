"""Plain values (None, bool, numbers, text, lists, dictionaries) of what a pickle describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpdoctor.replay.checkpoints.pickles.records import Array, Global, Persistent, Record

_NODES = 500_000
"""Values made at most: shared lists of shared lists ("billion laughs") would expand without end."""
_DEPTH = 40
_CUT = "..."


def plain(value: Any, tensor: Callable[[Record], Any] | None = None) -> Any:
    """`value` as plain data.

    An enum member becomes its value, an object its fields with the class under `__class__`, a path
    its text, bytes and arrays a note of their size. `tensor` gives the plain form of a tensor's
    record, or None for a record that is no tensor. Beyond the budget stands "...".
    """
    return _Plain(tensor or (lambda record: None)).convert(value, 0)


class _Plain:
    def __init__(self, tensor: Callable[[Record], Any]) -> None:
        self.tensor = tensor
        self.left = _NODES

    def convert(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if depth > _DEPTH or self.left < 0:
            return _CUT
        if isinstance(value, dict):
            return self.mapping(value.items(), depth)
        if isinstance(value, list | tuple):
            return self.sequence(value, depth)
        if isinstance(value, Record):
            return self.record(value, depth)
        if isinstance(value, Global):
            return str(value)
        if isinstance(value, bytes):
            return f"<{len(value)} bytes>"
        if isinstance(value, Array):
            return f"<array {value.dtype}{list(value.shape)}>"
        if isinstance(value, Persistent):
            return "<stored elsewhere>"
        return str(value) if isinstance(value, complex) else f"<{type(value).__name__}>"

    def sequence(self, values: Any, depth: int) -> list[Any]:
        made = []
        for value in values:
            if self.left < 0:
                made.append(_CUT)
                break
            made.append(self.convert(value, depth + 1))
        return made

    def mapping(self, pairs: Any, depth: int) -> dict[str, Any]:
        made = {}
        for key, value in pairs:
            if self.left < 0:
                made[_CUT] = _CUT
                break
            made[_label(key)] = self.convert(value, depth + 1)
        return made

    def record(self, record: Record, depth: int) -> Any:
        found = self.tensor(record)
        if found is not None:
            return found
        name = record.name
        if record.pairs or name in ("collections.OrderedDict", "collections.defaultdict", "builtins.dict"):
            return self.mapping(record.pairs, depth)
        if name in ("builtins.set", "builtins.frozenset", "builtins.list", "collections.deque"):
            first = record.args[0] if record.args and isinstance(record.args[0], list | tuple) else ()
            return self.sequence([*first[: max(self.left, 0)], *record.items], depth)
        if name.startswith("pathlib.") or name.startswith("pathlib._local."):
            return "/".join(str(part) for part in record.args[:64] if isinstance(part, str)).replace("//", "/")
        fields = _fields(record.state)
        if fields is not None:
            return {"__class__": name, **self.mapping(fields.items(), depth)}
        if len(record.args) == 1 and record.state is None and not record.items and not record.kwargs:
            return self.convert(record.args[0], depth + 1)
        made: dict[str, Any] = {"__class__": name}
        if record.args:
            made["args"] = self.sequence(record.args, depth)
        if isinstance(record.kwargs, dict):
            made |= self.mapping(record.kwargs.items(), depth)
        if record.state is not None:
            made["state"] = self.convert(record.state, depth + 1)
        if record.items:
            made["items"] = self.sequence(record.items, depth)
        return made


def _label(key: Any) -> str:
    """A dictionary key as text: numbers keep their digits, an enum member gives its value."""
    if isinstance(key, str):
        return key
    return str(key) if key is None or isinstance(key, bool | int | float | Global) else f"<{type(key).__name__}>"


def _fields(state: Any) -> dict[Any, Any] | None:
    """The instance's fields in an argument of `__setstate__`: a dictionary, or the pair (dictionary, slots)."""
    if isinstance(state, dict):
        return state
    if isinstance(state, tuple) and len(state) == 2 and all(part is None or isinstance(part, dict) for part in state):
        return {**(state[0] or {}), **(state[1] or {})}
    return None
