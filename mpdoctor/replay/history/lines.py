"""The lines of a text log: progress bars taken apart, colours removed, long lines cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_at, size_of

LOG_LIMIT = 2 << 30
"""Largest text log that is read, in bytes."""
_PIECE = 1 << 20
_LINE_LIMIT = 1 << 16
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ENDS = re.compile(rb"[\r\n]+")


def lines_of(path: Path) -> Iterator[str]:
    """Lines of a log, ended by newlines or carriage returns, at most 64 KiB of each. Raises Refused."""
    with open_regular(path) as file:
        size = size_of(file)
        if size > LOG_LIMIT:
            raise Refused(ProblemKind.TOO_BIG, path, f"{size:,} bytes; mpdoctor reads logs up to {LOG_LIMIT:,}")
        offset, rest = 0, b""
        while offset < size:
            piece = read_at(file, path, offset, _PIECE)
            if not piece:
                break
            offset += len(piece)
            *whole, rest = _ENDS.split(rest + piece)
            rest = rest[:_LINE_LIMIT]
            yield from (text_of(line) for line in whole)
        if rest:
            yield text_of(rest)


def text_of(line: bytes) -> str:
    """A line as text, without colours."""
    text = line[:_LINE_LIMIT].decode("utf-8", "replace")
    return _COLOURS.sub("", text) if "\x1b" in text else text


def head_text(head: bytes) -> str:
    """The start of a file as text, for recognition; empty for binary files."""
    return "" if b"\0" in head[:4096] else text_of(head)
