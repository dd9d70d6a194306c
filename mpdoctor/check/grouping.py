"""Which files make up one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.sources.node import Document

Member = tuple[Document, Dialect]


def grouped(members: Sequence[Member], *, together: bool = True) -> list[list[Member]]:
    """Runs. Files of different roles (a trainer's config, an engine's, a launcher's) belong together; two of the same role do not.

    Args:
        members: documents with their dialect, an included document right after the one that names it.
        together: whether to try all of them as one run first (they were named together); otherwise only
            files of the same folder are.
    """
    if not members:
        return []
    if together and _one_run(members):
        return [list(members)]
    runs: list[list[Member]] = []
    folders: dict[str, list[Member]] = {}
    for member in members:
        folders.setdefault(PurePath(member[0].path).parent.as_posix(), []).append(member)
    for folder in folders.values():
        runs += [folder] if _one_run(folder) else _apart(folder)
    return runs


def _one_run(members: Sequence[Member]) -> bool:
    roles = [dialect.role for _, dialect in members if dialect.role is not Role.PART]
    return len(roles) == len(set(roles))


def _apart(members: Sequence[Member]) -> list[list[Member]]:
    """Each trainer's config is a run of its own, with the files that it names; all other files are judged alone."""
    runs: list[list[Member]] = []
    current: list[Member] | None = None
    for member in members:
        if member[1].role is Role.TRAINER:
            current = [member]
            runs.append(current)
        elif current is not None and _named_by(current[0][0], member[0]):
            current.append(member)
        else:
            runs.append([member])
    return runs


def _named_by(trainer: Document, other: Document) -> bool:
    """Whether the other document was pulled in by this one (embedded in it, or named by it)."""
    if other.path == trainer.path:
        return True
    name = PurePath(other.path).name
    return any(isinstance(node.value, str) and PurePath(node.value).name == name for _, node in trainer.root.walk())
