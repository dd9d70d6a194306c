"""A `.safetensors` file: eight bytes of header length, a JSON header, then the tensors' bytes."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import ITEM_BYTES, Checkpoint, Problem, ProblemKind, TensorEntry
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_at, size_of
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.names import printable
from mpdoctor.replay.checkpoints.roles import role_of

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
_SUB_BYTE_DTYPES = frozenset({"F4", "F6_E2M3", "F6_E3M2"})
_HEADER_LIMIT = 100_000_000
"""The format's own limit for the header, in bytes."""
_HEADER_READ = 32 << 20
"""Largest header that is read: 300,000 tensors. Parsed, it takes thirty times its size in memory."""


def recognise(seen: Seen) -> int:
    """A plausible header length followed by the opening brace of the header."""
    if len(seen.head) < 9:
        return 0
    (length,) = struct.unpack("<Q", seen.head[:8])
    opens = seen.head[8:].lstrip(b" \t\r\n")[:1] == b"{"
    if opens and 2 <= length <= _HEADER_LIMIT:
        return 60
    return 20 if opens and seen.path.suffix == ".safetensors" else 0


def read(path: Path) -> Checkpoint:
    """List the tensors. Entries that contradict the format or the file's size become problems; the rest is kept."""
    with open_regular(path) as file:
        total = size_of(file)
        (length,) = struct.unpack("<Q", read_at(file, path, 0, 8).ljust(8, b"\0"))
        if length > _HEADER_LIMIT:
            raise Refused(ProblemKind.MALFORMED, path, f"the header claims {length:,} bytes; the format allows {_HEADER_LIMIT:,}")
        if 8 + length > total:
            raise Refused(ProblemKind.TRUNCATED, path, f"the header claims {length:,} bytes, and the file has {total:,}")
        if length > _HEADER_READ:
            raise Refused(ProblemKind.TOO_BIG, path, f"a header of {length:,} bytes; mpdoctor reads headers up to {_HEADER_READ:,}")
        problems: list[Problem] = []
        header = _header(read_at(file, path, 8, length), path, problems)
    metadata = header.pop("__metadata__", None)
    start, tensors = 8 + length, []
    for name, entry in header.items():
        tensor = _tensor(name, entry, path, start, total, problems)
        if tensor is not None:
            tensors.append(tensor)
    _overlaps(tensors, path, problems)
    _unclaimed(tensors, path, start, total, problems)
    plain = {printable(str(k)): printable(str(v)[:1000]) for k, v in metadata.items()} if isinstance(metadata, dict) else {}
    return Checkpoint(
        path=path, format="safetensors", tensors=tuple(tensors), files=(path,), extra={"metadata": plain} if plain else {}, problems=tuple(problems)
    )


def _header(data: bytes, path: Path, problems: list[Problem]) -> dict[str, Any]:
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made:
                twice.append(key)
            made[key] = value
        return made

    try:
        header = json.loads(data, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise Refused(ProblemKind.MALFORMED, path, f"the header is no JSON ({type(error).__name__})") from None
    if not isinstance(header, dict):
        raise Refused(ProblemKind.MALFORMED, path, "the header is no JSON object")
    problems.extend(Problem(kind=ProblemKind.DUPLICATE, file=path, text=f"the header names {name!r} twice", tensor=name) for name in twice[:20])
    return header


def _tensor(name: str, entry: Any, path: Path, start: int, total: int, problems: list[Problem]) -> TensorEntry | None:
    def refuse(kind: ProblemKind, text: str) -> None:
        problems.append(Problem(kind=kind, file=path, text=f"{name!r}: {text}", tensor=name))

    try:
        raw, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        numbers = (*shape, begin, end)
    except (KeyError, TypeError, ValueError):
        refuse(ProblemKind.MALFORMED, "its header entry lacks dtype, shape or data_offsets")
        return None
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**62 for n in numbers) or begin > end or len(shape) > 64:
        refuse(ProblemKind.MALFORMED, "its shape or offsets are impossible")
        return None
    dtype = _DTYPES.get(raw) if isinstance(raw, str) else None
    if dtype is None:
        kind = ProblemKind.NOT_JUDGED if raw in _SUB_BYTE_DTYPES else ProblemKind.MALFORMED
        refuse(kind, f"dtype {str(raw)[:40]!r} is one that mpdoctor cannot read")
        return None
    if prod(shape) * ITEM_BYTES[dtype] != end - begin:
        refuse(
            ProblemKind.MALFORMED, f"{end - begin:,} bytes announced for {list(shape)} of {dtype}, which takes {prod(shape) * ITEM_BYTES[dtype]:,}"
        )
        return None
    if start + end > total:
        refuse(ProblemKind.TRUNCATED, f"its bytes end at {start + end:,}, and the file has {total:,}")
        return None
    return TensorEntry(name=printable(name), dtype=dtype, shape=shape, role=role_of((name,)), file=path, offset=start + begin)


def _overlaps(tensors: list[TensorEntry], path: Path, problems: list[Problem]) -> None:
    end, before = 0, ""
    for tensor in sorted((t for t in tensors if t.extent), key=lambda t: t.offset):
        if tensor.offset < end:
            text = f"{tensor.name!r} and {before!r} claim the same bytes"
            problems.append(Problem(kind=ProblemKind.MALFORMED, file=path, text=text, tensor=tensor.name))
            return
        end, before = tensor.offset + tensor.extent, tensor.name


def _unclaimed(tensors: list[TensorEntry], path: Path, start: int, total: int, problems: list[Problem]) -> None:
    if problems:
        return
    claimed = start + sum(t.extent for t in tensors)
    if claimed != total:
        problems.append(Problem(kind=ProblemKind.MALFORMED, file=path, text=f"{total - claimed:,} bytes of the file belong to no tensor"))


FORMAT = Format(name="safetensors", title="safetensors file", recognise=recognise, read=read)
