"""A file of `torch.save`: a zip archive with `data.pkl` and one uncompressed record per storage."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from mpdoctor.replay.checkpoints.archive import LOCAL_HEADER, ZipRecord, local_record, next_header, read_directory, read_record
from mpdoctor.replay.checkpoints.checkpoint import ITEM_BYTES, Checkpoint, Problem, ProblemKind, extent
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_at, size_of
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.nested import Contents, contents_of, import_problems
from mpdoctor.replay.checkpoints.numbers import number_at
from mpdoctor.replay.checkpoints.pickles import Pickled, PickleFault, read_pickle
from mpdoctor.replay.checkpoints.pickles.tensors import StoredTensor, walk_tensors

PICKLE_LIMIT = 256 << 20
"""Largest pickle that is read, in bytes; a state dict takes about 100 bytes per tensor."""


def recognise(seen: Seen) -> int:
    """A zip archive's first record, named like torch's."""
    if seen.head[:4] != LOCAL_HEADER:
        return 0
    return 70 if b"/data.pkl" in seen.head[:512] or b"data.pkl" in seen.head[:512] else 10


def read(path: Path) -> Checkpoint:
    """List the tensors and plain values. A file that was cut off is read as far as it goes."""
    with open_regular(path) as file:
        problems: list[Problem] = []
        try:
            records = read_directory(file, path)
        except Refused as refused:
            if refused.problem.kind is not ProblemKind.TRUNCATED:
                raise
            pickled, records = _salvage(file, path)
            problems.append(Problem(kind=ProblemKind.TRUNCATED, file=path, text="the archive was cut off: its directory, at the end, is missing"))
        else:
            pickled = _pickle(file, path, records)
            _check_byte_order(file, path, records, problems)
        found = contents_of(pickled.value, path, _locator(records, size_of(file)), number_at(file, path))
    problems += found.problems + import_problems(pickled.imports, path)
    return as_checkpoint(path, "torch-zip", found, problems)


def as_checkpoint(path: Path, name: str, found: Contents, problems: list[Problem]) -> Checkpoint:
    """The checkpoint of one pickled file."""
    return Checkpoint(
        path=path,
        format=name,
        tensors=tuple(found.tensors),
        files=(path,),
        training_args=found.training_args,
        param_groups=found.param_groups,
        scheduler=found.scheduler,
        scaler=found.scaler,
        rng=found.rng,
        step=found.step,
        extra={"keys": found.keys, **found.extra},
        problems=tuple(problems),
    )


def _pickle(file: BinaryIO, path: Path, records: dict[str, ZipRecord]) -> Pickled:
    record = records.get("data.pkl")
    if record is None:
        what = "a zip archive, but not one of torch.save"
        raise Refused(ProblemKind.MALFORMED, path, what)
    try:
        return read_pickle(read_record(file, path, record, PICKLE_LIMIT))
    except PickleFault as fault:
        raise Refused(ProblemKind.TOO_BIG if fault.over_budget else ProblemKind.MALFORMED, path, f"its data.pkl: {fault}") from None


def _check_byte_order(file: BinaryIO, path: Path, records: dict[str, ZipRecord], problems: list[Problem]) -> None:
    record = records.get("byteorder")
    if record is not None and read_record(file, path, record, 64) == b"big":
        raise Refused(ProblemKind.NOT_JUDGED, path, "saved on a big-endian machine, which mpdoctor does not read")


def _locator(records: dict[str, ZipRecord], total: int) -> Callable[[StoredTensor], tuple[int, bytes | None]]:
    def locate(tensor: StoredTensor) -> tuple[int, bytes | None]:
        if tensor.inline is not None:
            return 0, tensor.inline
        record = records.get(f"data/{tensor.storage}")
        if record is None:
            raise ValueError(f"its storage 'data/{tensor.storage}' is not in the archive")
        if not record.stored:
            raise ValueError(f"its storage 'data/{tensor.storage}' is compressed, which torch never does")
        return within(tensor, record.offset, record.size, total), None

    return locate


def within(tensor: StoredTensor, start: int, size: int, total: int) -> int:
    """First byte of a tensor whose storage lies at `start`. Raises ValueError when it reaches beyond the storage or the file."""
    width = ITEM_BYTES[tensor.dtype]
    first = tensor.start * width
    end = first + extent(tensor.shape, tensor.strides) * width
    if end > size:
        raise ValueError(f"it needs {end:,} bytes of its storage, which has {size:,}")
    if start + end > total:
        raise ValueError(f"its bytes end at {start + end:,}, and the file ends at {total:,}")
    return start + first


def _salvage(file: BinaryIO, path: Path) -> tuple[Pickled, dict[str, ZipRecord]]:
    """Records of an archive without directory: torch writes the pickle first, then the storages one after the other."""
    first = local_record(file, path, 0)
    if first is None or first[0] != "data.pkl":
        raise Refused(ProblemKind.TRUNCATED, path, "the archive was cut off, and its pickle is not where torch puts it")
    try:
        data = read_at(file, path, first[1], min(PICKLE_LIMIT, size_of(file)))
        pickled = read_pickle(data)
    except PickleFault as fault:
        raise Refused(ProblemKind.TRUNCATED, path, f"the archive was cut off inside its pickle ({fault})") from None
    sizes = {t.storage: t.storage_bytes for _, t in walk_tensors(pickled.value) if isinstance(t, StoredTensor)}
    records: dict[str, ZipRecord] = {}
    position = next_header(file, path, first[1] + pickled.end)
    while position is not None:
        try:
            here = local_record(file, path, position)
        except struct.error:
            break
        if here is None:
            break
        name, offset = here
        size = sizes.get(name.removeprefix("data/"), 0) if name.startswith("data/") else 0
        records[name] = ZipRecord(name, offset, size, True)
        position = next_header(file, path, offset + size)
    return pickled, records


FORMAT = Format(name="torch-zip", title="torch.save file", recognise=recognise, read=read)
