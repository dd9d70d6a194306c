"""Zip archives as torch writes them: where each record's bytes lie in the file.

torch stores records uncompressed and aligned, so that they can be read in place. The archive's
directory is at its end; where a file was cut off, the records are found by their local headers.
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, read_at, size_of

LOCAL_HEADER = b"PK\x03\x04"
_DIRECTORY_LIMIT = 128 << 20
_RECORDS = 1_000_000


@dataclass(frozen=True, slots=True)
class ZipRecord:
    """A record of an archive: name without the archive's own folder, first byte, size, and whether it is stored as it is."""

    name: str
    offset: int
    size: int
    stored: bool


def read_directory(file: BinaryIO, path: Path) -> dict[str, ZipRecord]:
    """The archive's records by name. Raises Refused when there is no directory (the file was cut off) or it lies."""
    total = size_of(file)
    if _directory_size(file, path, total) > _DIRECTORY_LIMIT:
        raise Refused(ProblemKind.TOO_BIG, path, "the archive's directory is larger than any checkpoint needs")
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error, EOFError) as error:
        raise Refused(ProblemKind.TRUNCATED, path, f"the archive's directory cannot be read ({error})") from None
    if len(entries) > _RECORDS:
        raise Refused(ProblemKind.TOO_BIG, path, f"{len(entries):,} records in one archive")
    found: dict[str, ZipRecord] = {}
    for entry in entries:
        header = read_at(file, path, entry.header_offset, 30)
        if len(header) < 30 or header[:4] != LOCAL_HEADER:
            raise Refused(ProblemKind.MALFORMED, path, f"the archive's directory points to no record at byte {entry.header_offset}")
        name_length, extra_length = struct.unpack("<2H", header[26:30])
        offset = entry.header_offset + 30 + name_length + extra_length
        name = entry.filename.partition("/")[2]
        found[name or entry.filename] = ZipRecord(name, offset, entry.file_size, entry.compress_type == zipfile.ZIP_STORED)
    return found


def _directory_size(file: BinaryIO, path: Path, total: int) -> int:
    """Bytes of the directory, from the record at the archive's end; 0 where there is none."""
    tail = read_at(file, path, max(0, total - 65_557), 65_557)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        return 0
    size, _ = struct.unpack("<2I", tail[at + 12 : at + 20])
    if size != 0xFFFFFFFF:
        return int(size)
    at = tail.rfind(b"PK\x06\x06", 0, at)
    return int(struct.unpack("<Q", tail[at + 40 : at + 48])[0]) if at >= 0 else 0


def local_record(file: BinaryIO, path: Path, header_offset: int) -> tuple[str, int] | None:
    """Name and first data byte of the record whose local header is at `header_offset`; None when there is no header."""
    header = read_at(file, path, header_offset, 30)
    if len(header) < 30 or header[:4] != LOCAL_HEADER:
        return None
    name_length, extra_length = struct.unpack("<2H", header[26:30])
    raw = read_at(file, path, header_offset + 30, name_length)
    return raw.decode("utf-8", "replace").partition("/")[2], header_offset + 30 + name_length + extra_length


def next_header(file: BinaryIO, path: Path, start: int, reach: int = 4096) -> int | None:
    """Byte of the next local header at or after `start`, within `reach`."""
    at = read_at(file, path, start, reach).find(LOCAL_HEADER)
    return start + at if at >= 0 else None


def read_record(file: BinaryIO, path: Path, record: ZipRecord, limit: int) -> bytes:
    """A record's bytes, decompressed where needed, at most `limit`. Raises Refused."""
    if record.size > limit:
        raise Refused(ProblemKind.TOO_BIG, path, f"record {record.name!r} claims {record.size:,} bytes, more than the {limit:,} that it may have")
    if record.stored:
        return read_at(file, path, record.offset, record.size)
    return _inflate(file, path, record, limit)


def _inflate(file: BinaryIO, path: Path, record: ZipRecord, limit: int) -> bytes:
    import zlib

    engine, made, offset = zlib.decompressobj(-15), bytearray(), record.offset
    try:
        while not engine.eof and len(made) <= limit:
            piece = engine.unconsumed_tail or read_at(file, path, offset, 1 << 16)
            if not engine.unconsumed_tail:
                offset += len(piece)
            if not piece:
                break
            made += engine.decompress(piece, limit + 1 - len(made))
    except zlib.error:
        raise Refused(ProblemKind.MALFORMED, path, f"record {record.name!r} cannot be decompressed") from None
    if len(made) > limit:
        raise Refused(ProblemKind.TOO_BIG, path, f"record {record.name!r} decompresses to more than {limit:,} bytes")
    return bytes(made)
