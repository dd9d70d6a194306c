"""Opening a user's files without trusting them: regular files only, inside the checkpoint, of bounded size."""

from __future__ import annotations

import io
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mpdoctor.replay.checkpoints.checkpoint import Problem, ProblemKind

JSON_LIMIT = 128 << 20
"""Largest JSON file that is parsed, in bytes: a `trainer_state.json` with about 800,000 log entries."""


class Refused(Exception):
    """A file that cannot be read, with the problem to report."""

    def __init__(self, kind: ProblemKind, file: Path, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(kind=kind, file=file, text=text)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, unbuffered.

    Raises Refused for anything else. A pipe or a device would block or never end; opening without
    blocking and looking at what was opened leaves no moment in which the file can be swapped.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise Refused(ProblemKind.MISSING, path, "the file does not exist") from None
    except PermissionError:
        raise Refused(ProblemKind.UNREADABLE, path, "no permission to read the file") from None
    except (OSError, ValueError) as error:
        raise Refused(ProblemKind.UNREADABLE, path, f"cannot be opened ({_reason(error)})") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise Refused(ProblemKind.UNREADABLE, path, f"{what}, not a file")
    return os.fdopen(descriptor, "rb", buffering=0)


def size_of(file: BinaryIO) -> int:
    """Size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole file, up to `limit` bytes. Raises Refused."""
    with open_regular(path) as file:
        size = size_of(file)
        if size > limit:
            raise Refused(ProblemKind.TOO_BIG, path, f"{size:,} bytes, more than the {limit:,} that such a file may have")
        return read_at(file, path, 0, size)


def read_head(path: Path, count: int) -> bytes:
    """Up to `count` bytes from the start of a file. Raises Refused."""
    with open_regular(path) as file:
        return read_at(file, path, 0, min(count, size_of(file)))


def read_at(file: BinaryIO, path: Path, offset: int, count: int) -> bytes:
    """`count` bytes at `offset`, fewer only where the file ends. Raises Refused when reading fails."""
    pieces: list[bytes] = []
    while count > 0:
        try:
            piece = os.pread(file.fileno(), min(count, 1 << 26), offset)
        except OSError as error:
            raise Refused(ProblemKind.UNREADABLE, path, f"reading failed ({_reason(error)})") from None
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of an open file that holds a file of its own: the whole file, mostly.

    Attributes:
        file: the open file.
        path: its path, for messages.
        base: first byte of the stretch.
        size: its length in bytes.
    """

    file: BinaryIO
    path: Path
    base: int
    size: int

    @classmethod
    def whole(cls, file: BinaryIO, path: Path) -> Section:
        """All of an open file."""
        return cls(file, path, 0, size_of(file))

    def read(self, offset: int, count: int) -> bytes:
        """`count` bytes at `offset` of the stretch, fewer only where it ends. Raises Refused."""
        if offset < 0 or offset >= self.size:
            return b""
        return read_at(self.file, self.path, self.base + offset, min(count, self.size - offset))


class SectionStream(io.RawIOBase):
    """A section as a seekable stream, for libraries that read files."""

    def __init__(self, section: Section) -> None:
        super().__init__()
        self._section = section
        self._position = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """Position from the section's start."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; returns the new position. Raises OSError before the start, as files do."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._section.size}[whence]
        if origin + offset < 0:
            raise OSError("seek before the start")
        self._position = origin + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the position on; returns the number of bytes."""
        data = self._section.read(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def read_json(path: Path, limit: int = JSON_LIMIT) -> Any:
    """A JSON file as plain values. `NaN` and `Infinity` are accepted: trainers write them. Raises Refused."""
    data = read_bytes(path, limit)
    if not data.strip(b"\0 \t\r\n"):
        raise Refused(ProblemKind.EMPTY, path, "the file is empty")
    try:
        return _encodable(json.loads(data), data)
    except RecursionError:
        raise Refused(ProblemKind.MALFORMED, path, "JSON nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Refused(ProblemKind.MALFORMED, path, f"not a JSON text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(error.doc.rstrip()) - 1
        kind = ProblemKind.TRUNCATED if at_end else ProblemKind.MALFORMED
        what = "JSON ends too early" if at_end else f"not valid JSON: {error.msg}"
        raise Refused(kind, path, f"{what} (line {error.lineno}, column {error.colno})") from None
    except ValueError as error:
        raise Refused(ProblemKind.MALFORMED, path, f"not valid JSON: {error}") from None


def _encodable(value: Any, data: bytes) -> Any:
    """The value without half surrogate pairs, which JSON can escape and nothing can print."""
    if b"\\ud" not in data and b"\\uD" not in data:
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def read_json_object(path: Path, limit: int = JSON_LIMIT) -> dict[str, Any]:
    """A JSON file whose root is an object. Raises Refused."""
    value = read_json(path, limit)
    if not isinstance(value, dict):
        raise Refused(ProblemKind.MALFORMED, path, f"the JSON root is a {type(value).__name__}, not an object")
    return value


def inside(folder: Path, name: str) -> Path:
    """The file called `name` in a checkpoint folder.

    Raises Refused when the name, or a link behind it, leads out of the folder. Links into the store
    that the folder itself belongs to are followed: the Hugging Face cache, git-annex and DVC keep
    every file as such a link.
    """
    path = folder / name
    if "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise Refused(ProblemKind.ESCAPES, folder / Path(name).name.replace("\0", ""), f"the name {name!r} points out of the checkpoint's folder")
    try:
        real, root = path.resolve(), _store_root(folder.resolve())
    except (OSError, RuntimeError) as error:
        raise Refused(ProblemKind.UNREADABLE, path, f"cannot be resolved ({_reason(error)})") from None
    if not real.is_relative_to(root):
        raise Refused(ProblemKind.ESCAPES, path, "a link that leads out of the checkpoint's folder; copy the file, or pass the folder that holds it")
    return path


def _store_root(folder: Path) -> Path:
    """The folder that links may point into: the checkpoint's own, or the content store around it."""
    for parent in (folder, *folder.parents):
        if (parent.name == "snapshots" and (parent.parent / "blobs").is_dir()) or (parent / ".git/annex").is_dir() or (parent / ".dvc").is_dir():
            return parent.parent if parent.name == "snapshots" else parent
    return folder


def names_in(folder: Path, limit: int = 100_000) -> list[str]:
    """Names of a folder's entries, sorted. Raises Refused."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for _, entry in zip(range(limit + 1), entries, strict=False)]
    except OSError as error:
        raise Refused(ProblemKind.UNREADABLE, folder, f"the folder cannot be listed ({_reason(error)})") from None
    if len(found) > limit:
        raise Refused(ProblemKind.TOO_BIG, folder, f"the folder has more than {limit:,} entries")
    return sorted(found)


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
