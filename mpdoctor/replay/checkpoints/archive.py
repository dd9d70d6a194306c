"""Zip archives as torch writes them: where each record's bytes lie.

torch stores records uncompressed and aligned, so that they can be read in place. The archive's
directory is at its end; where a file was cut off, the records are found by their local headers.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, Section, SectionStream

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


def read_directory(section: Section) -> dict[str, ZipRecord]:
    """The archive's records by name. Raises Refused when there is no directory (the file was cut off) or it lies."""
    if _directory_size(section) > _DIRECTORY_LIMIT:
        raise Refused(ProblemKind.TOO_BIG, section.path, "the archive's directory is larger than any checkpoint needs")
    try:
        with zipfile.ZipFile(SectionStream(section)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error, EOFError) as error:
        raise Refused(ProblemKind.TRUNCATED, section.path, f"the archive's directory cannot be read ({error})") from None
    if len(entries) > _RECORDS:
        raise Refused(ProblemKind.TOO_BIG, section.path, f"{len(entries):,} records in one archive")
    found: dict[str, ZipRecord] = {}
    for entry in entries:
        if entry.filename.startswith("/") or ".." in entry.filename.split("/"):
            text = f"record {entry.filename[:200]!r} points out of the archive; unpacking it would write there"
            raise Refused(ProblemKind.ESCAPES, section.path, text)
        header = section.read(entry.header_offset, 30)
        if len(header) < 30 or header[:4] != LOCAL_HEADER:
            raise Refused(ProblemKind.MALFORMED, section.path, f"the archive's directory points to no record at byte {entry.header_offset}")
        name_length, extra_length = struct.unpack("<2H", header[26:30])
        offset = entry.header_offset + 30 + name_length + extra_length
        name = entry.filename.partition("/")[2]
        found[name or entry.filename] = ZipRecord(name, offset, entry.file_size, entry.compress_type == zipfile.ZIP_STORED)
    return found


def _directory_size(section: Section) -> int:
    """Bytes of the directory, from the record at the archive's end; 0 where there is none."""
    tail = section.read(max(0, section.size - 65_557), 65_557)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        return 0
    size, _ = struct.unpack("<2I", tail[at + 12 : at + 20])
    if size != 0xFFFFFFFF:
        return int(size)
    at = tail.rfind(b"PK\x06\x06", 0, at)
    return int(struct.unpack("<Q", tail[at + 40 : at + 48])[0]) if at >= 0 and len(tail) >= at + 48 else 0


def local_record(section: Section, header_offset: int) -> tuple[str, int] | None:
    """Name and first data byte of the record whose local header is at `header_offset`; None when there is no header."""
    header = section.read(header_offset, 512)
    if len(header) < 30 or header[:4] != LOCAL_HEADER:
        return None
    name_length, extra_length = struct.unpack("<2H", header[26:30])
    raw = header[30 : 30 + name_length] if 30 + name_length <= len(header) else section.read(header_offset + 30, name_length)
    return raw.decode("utf-8", "replace").partition("/")[2], header_offset + 30 + name_length + extra_length


def next_header(section: Section, start: int, reach: int = 4096) -> int | None:
    """Byte of the next local header at or after `start`, within `reach`."""
    at = section.read(start, reach).find(LOCAL_HEADER)
    return start + at if at >= 0 else None


def read_record(section: Section, record: ZipRecord, limit: int) -> bytes:
    """A record's bytes, decompressed where needed, at most `limit`. Raises Refused."""
    if record.size > limit:
        text = f"record {record.name!r} claims {record.size:,} bytes, more than the {limit:,} that it may have"
        raise Refused(ProblemKind.TOO_BIG, section.path, text)
    return section.read(record.offset, record.size) if record.stored else _inflate(section, record, limit)


def _inflate(section: Section, record: ZipRecord, limit: int) -> bytes:
    engine, made, offset = zlib.decompressobj(-15), bytearray(), record.offset
    try:
        while not engine.eof and len(made) <= limit:
            piece = engine.unconsumed_tail
            if not piece:
                piece = section.read(offset, 1 << 16)
                offset += len(piece)
            if not piece:
                break
            made += engine.decompress(piece, limit + 1 - len(made))
    except zlib.error:
        raise Refused(ProblemKind.MALFORMED, section.path, f"record {record.name!r} cannot be decompressed") from None
    if len(made) > limit:
        raise Refused(ProblemKind.TOO_BIG, section.path, f"record {record.name!r} decompresses to more than {limit:,} bytes")
    return bytes(made)
