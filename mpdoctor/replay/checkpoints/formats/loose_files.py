"""A folder with checkpoint files under names of their own (`model.pt`, `last.ckpt`): each is read by its own format."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, names_in
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".pkl", ".nemo")
_FILES = 64


def recognise(seen: Seen) -> int:
    """Files with the suffixes of checkpoints, and nothing more telling."""
    return 5 if any(name.endswith(SUFFIXES) for name in seen.names) else 0


def read(path: Path) -> Checkpoint:
    """Read all files; values of one file are named `file/...` where there are several. Raises Refused when none can be read."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    folder.config = folder.json("config.json") or {}
    files = sorted(name for name in folder.names if name.endswith(SUFFIXES))
    for name in files[:_FILES]:
        folder.part(name, prefix=name if len(files) > 1 else "")
    if not folder.parts:
        first = folder.problems[0]
        raise Refused(first.kind, first.file, first.text)
    if len(files) > _FILES:
        text = f"{len(files)} checkpoint files, of which the first {_FILES} were read; pass one of them"
        folder.problems.append(Problem(kind=ProblemKind.NOT_JUDGED, file=path, text=text))
    return folder.checkpoint("folder")


FORMAT = Format(name="folder", title="folder of checkpoint files", folder=True, recognise=recognise, read=read)
