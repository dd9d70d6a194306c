"""Reading single numbers out of a tensor's bytes: the loss scale, a learning rate, a step count."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from mpdoctor.replay.checkpoints.checkpoint import TensorEntry
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_at

_CODES = {
    "float64": "<d", "float32": "<f", "float16": "<e", "int64": "<q", "int32": "<i", "int16": "<h", "int8": "<b", "uint8": "<B", "uint16": "<H",
    "uint32": "<I", "uint64": "<Q", "bool": "<?",
}  # fmt: skip


def decode(data: bytes, dtype: str) -> float | None:
    """The first element of `data`; None for dtypes without a number and for missing bytes."""
    if dtype == "bfloat16" and len(data) >= 2:
        return float(struct.unpack("<f", b"\0\0" + data[:2])[0])
    code = _CODES.get(dtype)
    if code is None or len(data) < struct.calcsize(code):
        return None
    value = struct.unpack_from(code, data)[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else float(value)


def number_at(file: BinaryIO, path: Path) -> Callable[[TensorEntry], float | None]:
    """A function that reads the first element of a tensor stored in `file`."""

    def read(entry: TensorEntry) -> float | None:
        data = entry.inline if entry.inline is not None else read_at(file, path, entry.offset, entry.item_bytes)
        return decode(data, entry.dtype)

    return read


def scalar(entry: TensorEntry) -> float | None:
    """The first element of a tensor; None when it cannot be read."""
    try:
        with open_regular(entry.file) as file:
            return number_at(file, entry.file)(entry)
    except Refused:
        return None
