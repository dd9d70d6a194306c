"""A file of torch.save before version 1.6 (or with the new format switched off): pickles, then raw storages."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import BinaryIO

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_at, size_of
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.nested import as_checkpoint, contents_of, import_problems
from mpdoctor.replay.checkpoints.numbers import number_at
from mpdoctor.replay.checkpoints.pickles import Pickled, PickleFault, read_pickle
from mpdoctor.replay.checkpoints.pickles.records import Global
from mpdoctor.replay.checkpoints.pickles.tensors import StoredTensor, walk_tensors
from mpdoctor.replay.checkpoints.torch_archive import PICKLE_LIMIT, fault_kind, within

MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
"""torch's magic number as it pickles it: the file's first bytes."""


def recognise(seen: Seen) -> int:
    """The magic number of torch, pickled."""
    return 80 if seen.head.startswith(MAGIC) else 0


def read(path: Path) -> Checkpoint:
    """List the tensors and plain values. Storages that were cut off become problems."""
    with open_regular(path) as file:
        total = size_of(file)
        value, keys, end, imports = _pickles(file, path, total)
        widths = {t.storage: t.storage_bytes for _, t in walk_tensors(value) if isinstance(t, StoredTensor)}
        places: dict[str, tuple[int, int]] = {}
        problems: list[Problem] = []
        for key in keys:
            head = read_at(file, path, end, 8)
            if len(head) < 8:
                problems.append(Problem(kind=ProblemKind.TRUNCATED, file=path, text=f"the file ends before storage {key!r}"))
                break
            (count,) = struct.unpack("<q", head)
            size = widths.get(key, 0)
            places[key] = (end + 8, size)
            if count < 0 or (size == 0 and count):
                problems.append(Problem(kind=ProblemKind.MALFORMED, file=path, text=f"storage {key!r} claims {count} elements"))
                break
            end += 8 + size

        def locate(tensor: StoredTensor) -> tuple[int, bytes | None]:
            if tensor.inline is not None:
                return 0, tensor.inline
            if tensor.storage not in places:
                raise ValueError("the file ends before its storage")
            start, size = places[tensor.storage]
            return within(tensor, start, size, total), None

        found = contents_of(value, path, locate, number_at(file, path))
    return as_checkpoint(path, "torch-legacy", found, problems + found.problems + import_problems(imports, path))


def _pickles(file: BinaryIO, path: Path, total: int) -> tuple[object, list[str], int, tuple[Global, ...]]:
    """The saved value, the storage keys, the byte where storages begin, and all imports."""
    size = 1 << 22
    while True:
        data = read_at(file, path, 0, min(size, total))
        try:
            parts = _sequence(data)
            break
        except PickleFault as fault:
            if not fault.truncated or len(data) >= min(total, PICKLE_LIMIT):
                raise Refused(fault_kind(fault), path, str(fault)) from None
            size *= 8
    version, system, saved, keys = parts[1:]
    if version.value != 1001:
        raise Refused(ProblemKind.MALFORMED, path, f"torch's legacy format has protocol version 1001, not {version.value!r}")
    if isinstance(system.value, dict) and system.value.get("little_endian") is False:
        raise Refused(ProblemKind.NOT_JUDGED, path, "saved on a big-endian machine, which mpdoctor does not read")
    if not isinstance(keys.value, list) or not all(isinstance(key, str) for key in keys.value):
        raise Refused(ProblemKind.MALFORMED, path, "its list of storages is no list of names")
    imports = tuple(named for part in parts for named in part.imports)
    return saved.value, keys.value, keys.end, imports


def _sequence(data: bytes) -> list[Pickled]:
    """The five pickles at the file's start: magic number, version, system, the saved value, storage keys."""
    parts: list[Pickled] = []
    for _ in range(5):
        parts.append(read_pickle(data, parts[-1].end if parts else 0))
    return parts


FORMAT = Format(name="torch-legacy", title="torch.save file (before torch 1.6)", recognise=recognise, read=read)
