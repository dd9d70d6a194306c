"""A plain pickle: a checkpoint written with `pickle.dump`, random states of accelerate, or anything else."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem
from mpdoctor.replay.checkpoints.files import Refused, open_regular, read_bytes
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.nested import as_checkpoint, contents_of, import_problems
from mpdoctor.replay.checkpoints.numbers import number_at
from mpdoctor.replay.checkpoints.pickles import PickleFault, read_pickle
from mpdoctor.replay.checkpoints.pickles.tensors import StoredTensor
from mpdoctor.replay.checkpoints.torch_archive import PICKLE_LIMIT, fault_kind

_SUFFIXES = frozenset({".pkl", ".pickle", ".bin", ".pt", ".pth", ".ckpt"})


def recognise(seen: Seen) -> int:
    """The protocol opcode of protocols 2 to 5; for the older ones, which have none, a checkpoint's suffix and a pickle that reads."""
    if seen.head[:1] == b"\x80" and seen.head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return 30
    if seen.path.suffix.lower() in _SUFFIXES and seen.head[:1] in (b"(", b"c", b"}", b"]", b"i"):
        try:
            read_pickle(seen.head)
        except PickleFault as fault:
            return 5 if fault.truncated and seen.size > len(seen.head) else 0
        return 5
    return 0


def read(path: Path) -> Checkpoint:
    """List what the pickle describes. Arrays inside it are judged; torch tensors inside a plain pickle are not."""

    def locate(tensor: StoredTensor) -> tuple[int, bytes | None]:
        if tensor.inline is None:
            raise ValueError("its storage is not in the file")
        return 0, tensor.inline

    data = read_bytes(path, PICKLE_LIMIT)
    try:
        pickled = read_pickle(data)
    except PickleFault as fault:
        raise Refused(fault_kind(fault), path, str(fault)) from None
    with open_regular(path) as file:
        found = contents_of(pickled.value, path, locate, number_at(file, path))
    problems: list[Problem] = found.problems + import_problems(pickled.imports, path)
    return as_checkpoint(path, "pickle", found, problems)


FORMAT = Format(name="pickle", title="pickle file", recognise=recognise, read=read)
