"""Checkpoint formats: one file each under `formats/`, recognised by content, found by scanning that folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpdoctor.core import rule
from mpdoctor.core.errors import NothingToJudge, UnreadableInput
from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, names_in, open_regular, read_at, size_of

_DEPTH, _FOLDERS = 3, 200
"""Levels, and folders of each, that are searched for a checkpoint below a folder that is none."""
HEAD_BYTES = 4096
"""How much of a file's start its recognition may look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What recognition looks at: the path, and the first bytes of a file or the names in a folder."""

    path: Path
    size: int = 0
    head: bytes = b""
    names: frozenset[str] = frozenset()

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder."""
        return not self.head and self.path.is_dir()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A checkpoint format.

    Attributes:
        name: stable name (`hf-trainer`).
        title: what people call it.
        folder: whether it is a folder, not a file.
        recognise: how specifically the content is this format: 0 not at all, 100 certain and most specific.
        read: describes the checkpoint. Raises Refused when nothing of it can be read; anything less becomes a Problem.
        declined: why mpdoctor does not judge it; None for the formats that it reads.
    """

    name: str
    title: str
    recognise: Callable[[Seen], int]
    folder: bool = False
    read: Callable[[Path], Checkpoint] | None = None
    declined: str | None = None


@cache
def all_formats() -> tuple[Format, ...]:
    """All formats, sorted by name."""
    found = [module.FORMAT for module in rule.modules("mpdoctor.replay.checkpoints.formats")]
    return tuple(sorted(found, key=lambda f: f.name))


def open_checkpoint(path: Path) -> Checkpoint:
    """Describe the checkpoint at `path` without torch and without running anything in it.

    Raises:
        UnreadableInput: it is missing, empty, foreign, or nothing of it can be read.
        NothingToJudge: its format is known and holds no training state that mpdoctor judges.
    """
    try:
        found = read_checkpoint(path)
    except Refused as refused:
        problem = refused.problem
        place = str(path) if problem.file == path else f"{path}: {problem.file.name}"
        raise UnreadableInput(f"{place}: {problem.text}", _below(path) or _way_out(problem)) from None
    if _says_nothing(found):
        what = found.problems[0].text if found.problems else "it holds no tensors, no settings and no log"
        raise NothingToJudge(f"{path}: {what}", "Pass a checkpoint with weights, optimizer state or a training log.")
    return found


def _says_nothing(found: Checkpoint) -> bool:
    """Whether nothing in a checkpoint can be judged, and nothing is wrong with it either."""
    told = found.tensors or found.training_args or found.trainer_state or found.scaler or found.scheduler or found.param_groups
    return not told and all(p.kind in (ProblemKind.NOT_JUDGED, ProblemKind.FOREIGN_CODE) for p in found.problems)


def read_checkpoint(path: Path) -> Checkpoint:
    """As `open_checkpoint`, for a part of a checkpoint: raises Refused instead of UnreadableInput."""
    seen = look_at(path)
    known = [(f.recognise(seen), f) for f in all_formats() if f.folder is seen.is_folder]
    score, best = max(known, key=lambda pair: pair[0], default=(0, None))
    if best is None or score <= 0:
        what = "a folder without a checkpoint that mpdoctor knows" if seen.is_folder else "not a checkpoint in a format that mpdoctor knows"
        raise Refused(ProblemKind.MALFORMED, path, what)
    if best.read is None:
        raise NothingToJudge(f"{path}: {best.title}: {best.declined}", "Pass the PyTorch checkpoint that it was made from.")
    return best.read(path)


def look_at(path: Path) -> Seen:
    """What recognition needs of a path. Raises Refused for what is missing, empty, or neither file nor folder."""
    try:
        folder = path.is_dir()
    except (OSError, ValueError):
        folder = False
    if folder:
        names = names_in(path)
        if not names:
            raise Refused(ProblemKind.EMPTY, path, "the folder is empty")
        return Seen(path=path, names=frozenset(names))
    with open_regular(path) as file:
        size = size_of(file)
        if size == 0:
            raise Refused(ProblemKind.EMPTY, path, "the file is empty")
        return Seen(path=path, size=size, head=read_at(file, path, 0, HEAD_BYTES))


def read_part(path: Path, problems: list[Problem]) -> Checkpoint | None:
    """Describe a file or folder inside a checkpoint; what cannot be read is added to `problems`."""
    try:
        part = read_checkpoint(path)
    except Refused as refused:
        problems.append(refused.problem)
        return None
    except NothingToJudge as error:
        problems.append(Problem(kind=ProblemKind.NOT_JUDGED, file=path, text=error.message))
        return None
    problems.extend(part.problems)
    return part


def _below(folder: Path) -> str | None:
    """Which checkpoint to pass instead of a folder that only leads to it, or None."""
    level = [folder]
    for _ in range(_DEPTH):
        try:
            level = [inner for place in level[:_FOLDERS] for inner in sorted(place.iterdir()) if inner.is_dir() and not inner.is_symlink()]
        except OSError:
            return None
        for place in level[:_FOLDERS]:
            with suppress(Refused, OSError):
                seen = look_at(place)
                if any(f.folder and f.read is not None and f.recognise(seen) > 0 for f in all_formats()):
                    return f"There is a checkpoint below it: {place}"
    return None


def _way_out(problem: Problem) -> str:
    match problem.kind:
        case ProblemKind.MISSING:
            return "Check the path."
        case ProblemKind.EMPTY:
            return "The save did not finish; use the checkpoint before it."
        case ProblemKind.TRUNCATED:
            return "The save or the copy did not finish; copy it again, or use the checkpoint before it."
        case ProblemKind.UNREADABLE:
            return "Pass a regular file or folder that you may read."
        case ProblemKind.ESCAPES:
            return "Checkpoints hold their files in one folder; pass the folder that holds them."
        case _:
            titles = ", ".join(sorted({f.title for f in all_formats() if f.read}))
            return f"mpdoctor reads: {titles}."
