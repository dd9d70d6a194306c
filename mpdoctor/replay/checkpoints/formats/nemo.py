"""A `.nemo` file: a tar archive with `model_config.yaml` and `model_weights.ckpt`."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, Section, open_regular
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.nested import as_checkpoint, contents_of, import_problems
from mpdoctor.replay.checkpoints.numbers import number_at
from mpdoctor.replay.checkpoints.tar import TarMember, is_tar, members_of
from mpdoctor.replay.checkpoints.torch_archive import locator, read_archive

_GZIP = b"\x1f\x8b"


def recognise(seen: Seen) -> int:
    """A tar archive; a compressed one only by its name."""
    if is_tar(seen.head):
        return 50
    return 50 if seen.head[:2] == _GZIP and seen.path.suffix == ".nemo" else 0


def read(path: Path) -> Checkpoint:
    """Read the weights inside. Nothing is unpacked."""
    with open_regular(path) as file:
        whole = Section.whole(file, path)
        if whole.read(0, 2) == _GZIP:
            raise Refused(ProblemKind.NOT_JUDGED, path, "a compressed archive; unpack it with `tar xzf` and pass the folder")
        members, cut = members_of(whole)
        problems = [p for member in members for p in _escaping(member, path)]
        if cut:
            problems.append(Problem(kind=ProblemKind.TRUNCATED, file=path, text="the archive was cut off"))
        weights = next((m for m in members if m.name.endswith((".ckpt", ".pt", ".bin"))), None)
        if weights is None:
            raise Refused(ProblemKind.MALFORMED, path, "a tar archive without model_weights.ckpt")
        section = Section(file, path, weights.offset, min(weights.size, max(0, whole.size - weights.offset)))
        pickled, records, _ = read_archive(section)
        found = contents_of(pickled.value, path, locator(section, records), number_at(file, path))
    return as_checkpoint(path, "nemo", found, problems + found.problems + import_problems(pickled.imports, path))


def _escaping(member: TarMember, path: Path) -> list[Problem]:
    if member.name.startswith("/") or ".." in Path(member.name).parts:
        text = f"member {member.name[:200]!r} points out of the archive; unpacking it would write there"
        return [Problem(kind=ProblemKind.ESCAPES, file=path, text=text)]
    return []


FORMAT = Format(name="nemo", title=".nemo archive", recognise=recognise, read=read)
