"""What `torch.save` wrote: a zip archive with a pickle and one uncompressed record per storage."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from mpdoctor.replay.checkpoints.archive import ZipRecord, local_record, next_header, read_directory, read_record
from mpdoctor.replay.checkpoints.checkpoint import ITEM_BYTES, ProblemKind, extent
from mpdoctor.replay.checkpoints.files import Refused, Section
from mpdoctor.replay.checkpoints.pickles import Pickled, PickleFault, read_pickle
from mpdoctor.replay.checkpoints.pickles.tensors import StoredTensor, walk_tensors

PICKLE_LIMIT = 256 << 20
"""Largest pickle that is read, in bytes; a state dict takes about 100 bytes per tensor."""

Records = Mapping[str, ZipRecord]


def read_archive(section: Section) -> tuple[Pickled, Records, bool]:
    """The pickle, the records, and whether the archive was cut off (its records were then found one by one).

    Raises Refused.
    """
    try:
        records = read_directory(section)
    except Refused as refused:
        if refused.problem.kind is not ProblemKind.TRUNCATED:
            raise
        return *read_in_order(section), True
    record = records.get("data.pkl")
    if record is None:
        raise Refused(ProblemKind.MALFORMED, section.path, "a zip archive, but not one of torch.save")
    order = records.get("byteorder")
    if order is not None and read_record(section, order, 64) == b"big":
        raise Refused(ProblemKind.NOT_JUDGED, section.path, "saved on a big-endian machine, which mpdoctor does not read")
    try:
        return read_pickle(read_record(section, record, PICKLE_LIMIT)), records, False
    except PickleFault as fault:
        raise Refused(fault_kind(fault), section.path, f"its data.pkl: {fault}") from None


def read_in_order(section: Section) -> tuple[Pickled, Records]:
    """The pickle and the records by local headers alone: torch writes the pickle first, then the storages one after the other.

    Raises Refused.
    """
    first = local_record(section, 0)
    if first is None or first[0] != "data.pkl":
        raise Refused(ProblemKind.TRUNCATED, section.path, "the archive was cut off, and its pickle is not where torch puts it")
    pickled = _growing(section, first[1])
    sizes = {t.storage: t.storage_bytes for _, t in walk_tensors(pickled.value) if isinstance(t, StoredTensor)}
    records: dict[str, ZipRecord] = {}
    position = next_header(section, first[1] + pickled.end)
    while position is not None:
        try:
            here = local_record(section, position)
        except struct.error:
            break
        if here is None:
            break
        name, offset = here
        size = sizes.get(name.removeprefix("data/"), 0) if name.startswith("data/") else 0
        records[name] = ZipRecord(name, offset, size, True)
        position = next_header(section, offset + size)
    return pickled, records


def _growing(section: Section, start: int) -> Pickled:
    """The pickle at `start`, whose length no header tells: read ever more until it ends."""
    size = 1 << 12
    while True:
        data = section.read(start, min(size, PICKLE_LIMIT))
        try:
            return read_pickle(data)
        except PickleFault as fault:
            if not fault.truncated or len(data) < size:
                raise Refused(ProblemKind.TRUNCATED, section.path, f"the archive was cut off inside its pickle ({fault})") from None
        size *= 16


def locator(section: Section, records: Records) -> Callable[[StoredTensor], tuple[int, bytes | None]]:
    """Where a tensor's bytes lie in the file."""

    def locate(tensor: StoredTensor) -> tuple[int, bytes | None]:
        if tensor.inline is not None:
            return 0, tensor.inline
        record = records.get(f"data/{tensor.storage}")
        if record is None:
            raise ValueError(f"its storage 'data/{tensor.storage}' is not in the archive")
        if not record.stored:
            raise ValueError(f"its storage 'data/{tensor.storage}' is compressed, which torch never does")
        return section.base + within(tensor, record.offset, record.size, section.size), None

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


def fault_kind(fault: PickleFault) -> ProblemKind:
    """The kind of problem that a faulty pickle is."""
    return ProblemKind.TOO_BIG if fault.over_budget else ProblemKind.TRUNCATED if fault.truncated else ProblemKind.MALFORMED
