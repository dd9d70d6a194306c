"""Which files make up one run."""

from __future__ import annotations

from collections.abc import Sequence

from mpdoctor.check.dialect import Dialect, Role
from mpdoctor.check.sources.node import Document

Member = tuple[Document, Dialect]


def grouped(members: Sequence[Member]) -> list[list[Member]]:
    """Runs: with one trainer's config all files belong to it; with several, each is a run of its own.

    Files beside several trainers' configs (a launcher's, an engine's, a model's) cannot be told to
    belong to one of them, so they are judged alone, unless a config names them (`deepspeed: zero2.json`): those stand right after it.
    """
    trainers = [member for member in members if member[1].role is Role.TRAINER]
    if len(trainers) <= 1 and _no_role_twice(members):
        return [list(members)] if members else []
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


def _no_role_twice(members: Sequence[Member]) -> bool:
    roles = [dialect.role for _, dialect in members]
    return all(roles.count(role) == 1 for role in (Role.LAUNCHER, Role.ENGINE, Role.MODEL) if role in roles)


def _named_by(trainer: Document, other: Document) -> bool:
    """Whether the other document was pulled in by this one (embedded in it, or named by it)."""
    if other.path == trainer.path:
        return True
    name = other.path.replace("\\", "/").rsplit("/", 1)[-1]
    return any(isinstance(node.value, str) and node.value.endswith(name) for node in trainer.root.mapping.values())
