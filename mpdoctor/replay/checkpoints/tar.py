"""Tar archives: which member lies where, without unpacking anything."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, Section

_BLOCK = 512
_MEMBERS = 100_000
_NAME_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class TarMember:
    """A regular file in an archive: its name, first byte and size."""

    name: str
    offset: int
    size: int


def is_tar(head: bytes) -> bool:
    """Whether bytes begin a tar archive (ustar, GNU and pax formats carry a mark)."""
    return len(head) >= _BLOCK and head[257:262] == b"ustar"


def members_of(section: Section) -> tuple[list[TarMember], bool]:
    """The regular files, and whether the archive was cut off. Raises Refused for headers that make no sense."""
    found: list[TarMember] = []
    position, long_name = 0, ""
    while position + _BLOCK <= section.size:
        header = section.read(position, _BLOCK)
        if not header.strip(b"\0"):
            return found, False
        size = _number(header[124:136])
        if size is None or header[257:262] != b"ustar" or len(found) >= _MEMBERS:
            raise Refused(ProblemKind.MALFORMED, section.path, f"the tar header at byte {position} makes no sense")
        kind, data = header[156:157], position + _BLOCK
        if kind in (b"L", b"x"):
            long_name = _long_name(section.read(data, min(size, _NAME_LIMIT)), kind)
        else:
            if kind in (b"0", b"\0"):
                found.append(TarMember(long_name or _name(header), data, size))
            long_name = ""
        position = data + (size + _BLOCK - 1) // _BLOCK * _BLOCK
        if data + size > section.size:
            return found, True
    return found, position > section.size


def _number(field: bytes) -> int | None:
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    try:
        return int(text, 8) if text else 0
    except ValueError:
        return None


def _name(header: bytes) -> str:
    name, prefix = (part.split(b"\0")[0].decode("utf-8", "replace") for part in (header[:100], header[345:500]))
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _long_name(data: bytes, kind: bytes) -> str:
    if kind == b"L":
        return data.split(b"\0")[0].decode("utf-8", "replace")
    for line in data.split(b"\n"):
        _, _, record = line.partition(b" ")
        key, _, value = record.partition(b"=")
        if key == b"path":
            return value.decode("utf-8", "replace")
    return ""
