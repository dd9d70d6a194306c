"""TensorBoard event files: length-prefixed protocol buffers, read without tensorflow."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_at, size_of
from mpdoctor.replay.history.columns import fields_of, merged
from mpdoctor.replay.history.history import Log, LogFormat

_RECORD_LIMIT = 64 << 20
_RECORDS = 5_000_000


def recognise(path: Path, head: bytes) -> int:
    """The first record, which names the format's version."""
    return 95 if b"brain.Event:" in head[:64] else 0


def read(path: Path) -> Log:
    """The scalars, one row per step. A file that was cut off (the run still writes it, or died) is read to the cut."""
    series: dict[str, dict[int, float]] = {}
    for step, tag, value in _scalars(path):
        series.setdefault(tag, {})[step] = value
    fields = fields_of(list(series))
    if not {"loss", "grad_norm", "scale"} & set(fields):
        names = ", ".join(sorted(series)[:8]) or "none"
        raise Refused(ProblemKind.MALFORMED, path, f"no scalar in it is a loss, a gradient norm or a loss scale (it has: {names})")
    rows = []
    for name, tag in fields.items():
        if name != "step":
            rows += [_row(step, name, value) for step, value in series[tag].items()]
    return Log(rows=tuple(sorted(merged(rows), key=lambda row: row.step)))


def _row(step: int, field: str, value: float) -> StepRecord:
    return StepRecord(
        step=step,
        loss=value if field == "loss" else None,
        grad_norm=value if field == "grad_norm" else None,
        scale=value if field == "scale" else None,
        lr=value if field == "lr" else None,
        source="history",
    )


def _scalars(path: Path) -> Iterator[tuple[int, str, float]]:
    with open_regular(path) as file:
        total, position = size_of(file), 0
        for _ in range(_RECORDS):
            header = read_at(file, path, position, 12)
            if len(header) < 12:
                return
            (length,) = struct.unpack("<Q", header[:8])
            if length > _RECORD_LIMIT or position + 16 + length > total:
                return
            yield from _event(read_at(file, path, position + 12, length))
            position += 16 + length


def _event(data: bytes) -> Iterator[tuple[int, str, float]]:
    step, summaries = 0, []
    for number, value in _fields(data):
        if number == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in _fields(summary):
            if number == 1 and isinstance(value, bytes):
                found = _value(value)
                if found is not None:
                    yield step, *found


def _value(data: bytes) -> tuple[str, float] | None:
    tag, scalar = "", None
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif number == 2 and isinstance(value, bytes) and len(value) == 4:
            scalar = struct.unpack("<f", value)[0]
        elif number == 8 and isinstance(value, bytes):
            scalar = _tensor(value)
    return (tag, float(scalar)) if tag and scalar is not None else None


def _tensor(data: bytes) -> float | None:
    """The scalar of a TensorProto: TensorFlow 2 writes float scalars this way."""
    for number, value in _fields(data):
        if number in (4, 5) and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
        if number in (4, 6) and isinstance(value, bytes) and len(value) == 8:
            return float(struct.unpack("<d", value)[0])
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protocol buffer: numbers for varints, bytes for everything else. Ends at the first that makes no sense."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind, number = key & 7, key >> 3
        if kind == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size, position = _varint(data, position)
        if size is None or position + size > len(data):
            return
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            return 0, len(data)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value & ((1 << 64) - 1), position
    return 0, len(data)


LOG = LogFormat(name="tensorboard", title="TensorBoard event file", recognise=recognise, read=read)
