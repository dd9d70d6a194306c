"""Calls whose result is known and harmless, made into plain values instead of records."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from mpdoctor.replay.checkpoints.pickles.records import Array, Global, Record

_NUMPY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_STRUCT_CODES = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u2": "H", "u1": "B", "b1": "?"}


def reduce_call(function: Any, args: tuple[Any, ...], kwargs: dict[Any, Any] | None, charge: Callable[[int], None]) -> Any:
    """The value of a call: a plain value for the few known constructors, else a record of it.

    `charge` is told the size of whatever is copied, and raises when the pickle's budget is spent.
    """
    if isinstance(function, Global) and not kwargs:
        known = _KNOWN.get((function.module, function.name))
        if known is not None:
            made = known(args, charge)
            if made is not None:
                return made
    return Record(function, args, kwargs)


def build(target: Any, state: Any) -> Any:
    """What `__setstate__` makes of an object: numpy arrays get their data; dictionaries keep what they are."""
    if isinstance(target, Record):
        if target.name.endswith("multiarray._reconstruct") and isinstance(state, tuple) and len(state) == 5:
            array = _array(state)
            if array is not None:
                return array
        target.state = state
    return target


Charge = Callable[[int], None]


def _ordered_dict(args: tuple[Any, ...], charge: Charge) -> Any:
    if not args:
        return {}
    pairs = args[0]
    if not isinstance(pairs, list):
        return None
    charge(len(pairs))
    if all(isinstance(p, list | tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs):
        return {pair[0]: pair[1] for pair in pairs}
    return None


def _encoded(args: tuple[Any, ...], charge: Charge) -> Any:
    """`_codecs.encode(text, 'latin1')`: how protocol 2 writes bytes."""
    if len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1"):
        charge(len(args[0]))
        try:
            return args[0].encode("latin-1")
        except UnicodeEncodeError:
            return None
    return None


def _size(args: tuple[Any, ...], _: Charge) -> Any:
    return args[0] if len(args) == 1 and isinstance(args[0], tuple) else None


def dtype_code(value: Any) -> str | None:
    """The type string (`<f8`) of a pickled `numpy.dtype`."""
    if not isinstance(value, Record) or not value.name.endswith("numpy.dtype") or not value.args or not isinstance(value.args[0], str):
        return None
    order = value.state[1] if isinstance(value.state, tuple) and len(value.state) > 1 and isinstance(value.state[1], str) else "<"
    code = value.args[0].lstrip("<>|=")
    return (">" if order == ">" else "<") + code


def _numpy_scalar(args: tuple[Any, ...], _: Charge) -> Any:
    if len(args) == 2 and isinstance(args[1], bytes):
        code = dtype_code(args[0])
        letter = _STRUCT_CODES.get(code[1:]) if code else None
        if code and letter and struct.calcsize(letter) == len(args[1]):
            return struct.unpack(code[0] + letter, args[1])[0]
    return None


def _array(state: tuple[Any, ...]) -> Array | None:
    _, shape, dtype, fortran, data = state
    code = dtype_code(dtype)
    if code is None or not isinstance(data, bytes) or not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        return None
    return Array(code, shape, bool(fortran), data)


def _reconstructed(args: tuple[Any, ...], _: Charge) -> Any:
    """`copyreg._reconstructor(cls, base, state)`: how protocols 0 and 1 make an instance of a class."""
    return Record(args[0], ()) if args and isinstance(args[0], Global) else None


def _empty_bytes(args: tuple[Any, ...], _: Charge) -> Any:
    return None if args else b""


def _complex(args: tuple[Any, ...], _: Charge) -> Any:
    return complex(*args) if len(args) == 2 and all(isinstance(a, int | float) for a in args) else None


def _bytearray(args: tuple[Any, ...], _: Charge) -> Any:
    return args[0] if len(args) == 1 and isinstance(args[0], bytes) else None


_KNOWN: dict[tuple[str, str], Callable[[tuple[Any, ...], Charge], Any]] = {
    ("collections", "OrderedDict"): _ordered_dict,
    ("_codecs", "encode"): _encoded,
    ("torch", "Size"): _size,
    ("builtins", "complex"): _complex,
    ("builtins", "bytes"): _empty_bytes,
    ("copyreg", "_reconstructor"): _reconstructed,
    ("builtins", "bytearray"): _bytearray,
    **{(module, "scalar"): _numpy_scalar for module in _NUMPY_MODULES},
}
