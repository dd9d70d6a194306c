"""Finding the tensors in what a pickle describes, with their names and the storages that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import ITEM_BYTES
from mpdoctor.replay.checkpoints.pickles.records import Array, Global, Persistent, Record

_STORAGE_DTYPES = {
    "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "DoubleStorage": "float64",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "QInt32Storage": "qint32", "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "UntypedStorage": "uint8",
}  # fmt: skip
_NUMPY_DTYPES = {
    "f8": "float64", "f4": "float32", "f2": "float16", "i8": "int64", "i4": "int32", "i2": "int16", "i1": "int8",
    "u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8", "b1": "bool", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_MAX_NODES = 20_000_000
_MAX_DEPTH = 200
_MAX_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor that a pickle describes.

    Attributes:
        dtype: torch's name without prefix.
        shape: sizes.
        strides: steps in elements; None when contiguous.
        storage: key of the storage that holds it; empty for values inside the pickle.
        storage_bytes: size of that storage as the pickle claims it.
        start: first element, in elements from the storage's start.
        inline: the values, for an array inside the pickle.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    storage: str
    storage_bytes: int
    start: int
    inline: bytes | None = None


@dataclass(frozen=True, slots=True)
class UnreadTensor:
    """Something that is a tensor in a form that mpdoctor cannot read (sparse, quantised, malformed), and why."""

    why: str


def tensor_of(record: Any) -> StoredTensor | UnreadTensor | None:
    """The tensor that a record describes, or None when it describes something else."""
    if isinstance(record, Array):
        return _from_array(record)
    if not isinstance(record, Record) or not isinstance(record.of, Global):
        return None
    function = record.of
    if function.module not in ("torch._utils", "torch._tensor", "torch.nn.parameter"):
        return None
    if function.name in ("_rebuild_parameter", "_rebuild_parameter_with_state", "Parameter") and record.args:
        return tensor_of(record.args[0])
    if function.name in ("_rebuild_tensor_v2", "_rebuild_tensor", "_rebuild_tensor_v3"):
        return _from_storage(record.args, function.name)
    if function.name == "_rebuild_qtensor":
        return _from_storage(record.args, function.name)
    if function.name == "_rebuild_sparse_tensor":
        return UnreadTensor("a sparse tensor")
    if function.name in ("_rebuild_meta_tensor_no_storage",):
        return UnreadTensor("a tensor without values (meta device)")
    return None


def _from_storage(args: tuple[Any, ...], function: str) -> StoredTensor | UnreadTensor:
    if len(args) < 4 or not isinstance(args[0], Persistent):
        return UnreadTensor("its storage is not where torch puts it")
    storage = args[0].id
    if not isinstance(storage, tuple) or len(storage) < 5 or storage[0] != "storage" or not isinstance(storage[1], Global):
        return UnreadTensor("its storage is not where torch puts it")
    stored = _STORAGE_DTYPES.get(storage[1].name)
    dtype = stored
    if function == "_rebuild_tensor_v3":
        dtype = args[6].name if len(args) > 6 and isinstance(args[6], Global) and args[6].module == "torch" else None
    if stored is None or dtype is None or dtype not in ITEM_BYTES:
        return UnreadTensor(f"a dtype that mpdoctor does not know ({dtype or storage[1].name})")
    start, shape, strides, count = args[1], args[2], args[3], storage[4]
    numbers = (start, count, *(shape if isinstance(shape, tuple) else (-1,)), *(strides if isinstance(strides, tuple) else (-1,)))
    if not all(isinstance(n, int) and 0 <= n < 2**62 for n in numbers) or len(shape) != len(strides) or len(shape) > _MAX_DIMENSIONS:
        return UnreadTensor("its shape, strides or offset are impossible")
    return StoredTensor(dtype, shape, None if _contiguous(shape, strides) else strides, str(storage[2])[:100], count * ITEM_BYTES[stored], start)


def _from_array(array: Array) -> StoredTensor | UnreadTensor:
    dtype = _NUMPY_DTYPES.get(array.dtype[1:])
    if dtype is None or array.dtype[0] == ">":
        return UnreadTensor(f"a numpy array of dtype {array.dtype}")
    strides = None
    if array.fortran:
        steps, step = [], 1
        for size in array.shape:
            steps.append(step)
            step *= max(size, 1)
        strides = None if _contiguous(array.shape, tuple(steps)) else tuple(steps)
    return StoredTensor(dtype, array.shape, strides, "", len(array.data), 0, array.data)


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def walk_tensors(root: Any) -> Iterator[tuple[tuple[str, ...], StoredTensor | UnreadTensor]]:
    """All tensors of a value with their paths, in order; shared containers are visited once.

    Paths skip what only wraps: positional arguments, and the `_parameters`, `_buffers` and `_modules`
    of a whole model saved by pickle.
    """
    seen: set[int] = set()
    stack: list[tuple[tuple[str, ...], Any]] = [((), root)]
    left = _MAX_NODES
    while stack and left > 0:
        left -= 1
        path, value = stack.pop()
        if value is None or isinstance(value, bool | int | float | str | bytes | Global):
            continue
        tensor = tensor_of(value)
        if tensor is not None:
            yield path, tensor
            continue
        if id(value) in seen or len(path) > _MAX_DEPTH:
            continue
        seen.add(id(value))
        stack.extend(reversed([((*path, part) if part else path, child) for part, child in _children(value)]))


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(_part(key), child) for key, child in value.items()]
    if isinstance(value, list | tuple):
        return [(str(index), child) for index, child in enumerate(value) if not (child is None or isinstance(child, bool | int | float | str))]
    if isinstance(value, Record):
        pairs = [(_part(key), child) for key, child in value.pairs]
        state = [("", value.state)] if value.state is not None else []
        items = [(str(index), child) for index, child in enumerate(value.items)]
        return [*((("", arg)) for arg in value.args), *state, *items, *pairs]
    return []


def _part(key: Any) -> str:
    text = str(key) if isinstance(key, str | int | float) else f"<{type(key).__name__}>"
    return "" if text in ("_parameters", "_buffers", "_modules") else text[:500]
