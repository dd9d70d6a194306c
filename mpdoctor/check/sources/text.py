"""A file's text, or one clear message why it has none."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from mpdoctor.core.errors import UnreadableInput

MAX_BYTES = 8 << 20
"""Largest file that is read as a config. The largest real one seen is 11 KB; logs inside `trainer_state.json` reach megabytes."""
MAX_NOTEBOOK = 64 << 20
"""Largest notebook: its pictures are in it."""


def read_text(path: str) -> str:
    """The text of a file, or of stdin for `-`; byte order marks are taken off, line ends become newlines.

    Raises UnreadableInput for what is missing, no regular file, unreadable, too large, binary, or not UTF-8.
    """
    limit = MAX_NOTEBOOK if path.endswith(".ipynb") else MAX_BYTES
    data = sys.stdin.buffer.read(limit + 1) if path == "-" else _bytes(path, limit)
    if len(data) > limit:
        what, hint = ("notebook", "Clear its outputs.") if limit == MAX_NOTEBOOK else ("training config", "Name the config itself.")
        raise UnreadableInput(f"{path}: larger than {limit >> 20} MB, which no {what} is", hint)
    return decode(data, path)


def _bytes(path: str, limit: int) -> bytes:
    try:
        # Opening a FIFO or a device would block or never end.
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  (Path.stat costs the same; the mode is what matters)
            raise UnreadableInput(f"{path}: not a regular file")
        with Path(path).open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        raise UnreadableInput(f"{path}: no such file", "Check the path; relative paths start at the current folder.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableInput(f"{path}: cannot be read: {reason}") from None


def decode(data: bytes, path: str) -> str:
    """Bytes to text. UTF-8 with or without a mark, and UTF-16 with one (Windows editors write it)."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding != "utf-16" and b"\0" in data:
        offset = data.index(b"\0")
        raise UnreadableInput(f"{path}: binary (a zero byte at offset {offset}), not a text config")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise UnreadableInput(f"{path}:{line}:{column}: not UTF-8 (byte 0x{data[error.start]:02x})", "Save the file as UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
