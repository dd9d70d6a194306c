"""Strict JSON back to dataclasses: the inverse of `jsonable`, by the annotations of the fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_NON_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Mismatch(ValueError):
    """A JSON value that is not of the wanted type; the message names the place and both."""


def from_jsonable(wanted: type[T], value: Any, where: str = "") -> T:
    """The value of type `wanted` that `jsonable` turned into `value`.

    Types: None, bool, int, float, str, enums, dataclasses, unions, tuples and dicts of them. Unknown keys are left out (a newer
    version wrote them); a missing key takes the field's default. Raises Mismatch for everything else.
    """
    return typing.cast("T", _decode(wanted, value, where))


def _decode(wanted: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(wanted)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(typing.get_args(wanted), value, where)
    if wanted is type(None):
        return _checked(value is None, None, wanted, value, where)
    if wanted is float:
        if isinstance(value, str) and value in _NON_FINITE:
            return _NON_FINITE[value]
        _checked(isinstance(value, int | float) and not isinstance(value, bool), None, wanted, value, where)
        try:
            return float(value)
        except OverflowError:
            raise Mismatch(f"{where or 'the value'} is too large for a float") from None
    if wanted in (bool, str):
        return _checked(isinstance(value, wanted), value, wanted, value, where)
    if wanted is int:
        return _checked(isinstance(value, int) and not isinstance(value, bool), value, wanted, value, where)
    if origin is tuple:
        return _decode_tuple(typing.get_args(wanted), value, where)
    if origin is dict:
        _checked(isinstance(value, dict), None, wanted, value, where)
        key_type, item_type = typing.get_args(wanted)
        return {_key(key_type, key, where): _decode(item_type, item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        known = [member.value for member in wanted]
        if value not in known:
            raise Mismatch(f"{where or 'the value'} is {value!r}, not one of {', '.join(map(str, known))}")
        return wanted(value)
    if dataclasses.is_dataclass(wanted):
        return _decode_dataclass(wanted, value, where)
    raise TypeError(f"no JSON form for {wanted}")


def _checked(fits: bool, result: Any, wanted: Any, value: Any, where: str) -> Any:
    if not fits:
        name = getattr(wanted, "__name__", str(wanted))
        raise Mismatch(f"{where or 'the value'} should be {'null' if wanted is type(None) else name}, not {_kind(value)}")
    return result


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _decode_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    problems = []
    for option in options:
        if option is type(None):
            continue
        try:
            return _decode(option, value, where)
        except Mismatch as problem:
            problems.append(problem)
    raise problems[0]


def _decode_tuple(items: tuple[Any, ...], value: Any, where: str) -> Any:
    _checked(isinstance(value, list), None, tuple, value, where)
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_decode(items[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if len(value) != len(items):
        raise Mismatch(f"{where or 'the list'} should hold {len(items)} values, not {len(value)}")
    return tuple(_decode(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(zip(items, value, strict=True)))


def _key(wanted: Any, key: str, where: str) -> Any:
    if wanted is str:
        return key
    try:
        return wanted(key)
    except ValueError:
        raise Mismatch(f"{where or 'the object'} has the key {key!r}, which is no {wanted.__name__}") from None


def _decode_dataclass(wanted: Any, value: Any, where: str) -> Any:
    _checked(isinstance(value, dict), None, wanted, value, where)
    hints = _hints(wanted)
    given = {name: _decode(hint, value[name], f"{where}.{name}" if where else name) for name, hint in hints.items() if name in value}
    missing = [
        f.name
        for f in dataclasses.fields(wanted)
        if f.name not in given and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise Mismatch(f"{where or 'the object'} lacks {', '.join(missing)}")
    return wanted(**given)


@cache
def _hints(wanted: type) -> dict[str, Any]:
    hints = typing.get_type_hints(wanted)
    return {f.name: hints[f.name] for f in dataclasses.fields(wanted)}
