"""A file of `torch.save`: a state dict, an optimizer's state, a whole training state, or a pickled model."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.replay.checkpoints.archive import LOCAL_HEADER
from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind
from mpdoctor.replay.checkpoints.files import Section, open_regular
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.nested import as_checkpoint, contents_of, import_problems
from mpdoctor.replay.checkpoints.numbers import number_at
from mpdoctor.replay.checkpoints.torch_archive import locator, read_archive


def recognise(seen: Seen) -> int:
    """A zip archive's first record, named like torch's."""
    if seen.head[:4] != LOCAL_HEADER:
        return 0
    return 70 if b"data.pkl" in seen.head[:512] else 10


def read(path: Path) -> Checkpoint:
    """List the tensors and plain values. A file that was cut off is read as far as it goes."""
    with open_regular(path) as file:
        section = Section.whole(file, path)
        pickled, records, cut = read_archive(section)
        found = contents_of(pickled.value, path, locator(section, records), number_at(file, path))
    problems = [Problem(kind=ProblemKind.TRUNCATED, file=path, text="the archive was cut off: its directory, at the end, is missing")] if cut else []
    problems += found.problems + import_problems(pickled.imports, path)
    return as_checkpoint(path, "torch-zip", found, problems)


FORMAT = Format(name="torch-zip", title="torch.save file", recognise=recognise, read=read)
