"""Reading tensors' bytes in pieces, through one buffer.

Pieces are read with `preadv` into a buffer that stays in the processor's cache. Mapping the file would
save the copy, but a file that shrinks while it is mapped kills the process; here it is a short read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, open_regular

PIECE_BYTES = 1 << 19
"""Bytes read at once, a multiple of every item size: small enough to stay in the processor's second-level cache."""


class Stream:
    """Reads files of a checkpoint, keeping the last one open. Use as a context manager."""

    def __init__(self) -> None:
        self._buffer = bytearray(PIECE_BYTES)
        self._view = memoryview(self._buffer)
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._opened: tuple[int, int] | None = None
        self.bytes_read = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._path = None

    def pieces(self, path: Path, offset: int, count: int, item_bytes: int) -> Iterator[memoryview]:
        """The bytes from `offset` on, in pieces of whole items; each piece is valid until the next one.

        Raises Refused when the file cannot be opened, ends too early, or reading fails.
        """
        file, left = self._open(path), count
        step = PIECE_BYTES // item_bytes * item_bytes
        while left > 0:
            want = min(step, left)
            got = self._fill(file, path, offset, want)
            yield self._view[:got]
            offset += got
            left -= got

    def whole(self, path: Path, offset: int, count: int) -> bytearray:
        """All bytes at once, for tensors whose elements lie scattered. Raises as `pieces`."""
        data = bytearray()
        for piece in self.pieces(path, offset, count, 1):
            data += piece
        return data

    def _open(self, path: Path) -> BinaryIO:
        if path != self._path or self._file is None:
            if self._file is not None:
                self._file.close()
            self._file, self._path = open_regular(path), path
        return self._file

    def _fill(self, file: BinaryIO, path: Path, offset: int, want: int) -> int:
        filled = 0
        while filled < want:
            try:
                got = os.preadv(file.fileno(), [self._view[filled:want]], offset + filled)
            except OSError as error:
                raise Refused(ProblemKind.UNREADABLE, path, f"reading failed ({(error.strerror or str(error)).lower()})") from None
            if got == 0:
                raise Refused(ProblemKind.TRUNCATED, path, "the file became shorter while it was read; is the run still writing it?")
            filled += got
        self.bytes_read += want
        return want
