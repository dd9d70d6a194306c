"""Strict JSON: dataclasses and enums to plain values, non-finite numbers as strings."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any


def jsonable(value: Any) -> Any:
    """Plain JSON value of `value`.

    NaN and infinities become the strings "nan", "inf", "-inf": JSON has no such numbers, and a
    reader must not lose the very finding. Raises TypeError for anything without a plain form.
    """
    match value:
        case None | bool() | str():
            return value.value if isinstance(value, Enum) else value
        case Enum():
            return value.value
        case int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case PurePath():
            return value.as_posix()
        case Mapping():
            return {str(jsonable(key)): jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [jsonable(item) for item in value]
        case set() | frozenset():
            return sorted((jsonable(item) for item in value), key=str)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: jsonable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    raise TypeError(f"no JSON form for {type(value).__name__}")


def to_json(value: Any, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """`value` as strict JSON text (no NaN or Infinity literals); other characters than ASCII escaped where that is asked for."""
    text = json.dumps(jsonable(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    # File names that are not UTF-8 hold lone surrogates, which cannot be written; as an escape they are valid JSON and survive.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def number(value: float | str | None) -> float | None:
    """Inverse of the string form: "nan", "inf", "-inf" or a number, as a float."""
    return None if value is None else float(value)
