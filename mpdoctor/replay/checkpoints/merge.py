"""Putting the parts of a checkpoint folder together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind, Role, TensorEntry
from mpdoctor.replay.checkpoints.files import Refused, inside, read_json_object
from mpdoctor.replay.checkpoints.format import read_part

_KEPT = frozenset(
    {
        "ds_config",
        "ds_version",
        "dp_world_size",
        "mp_world_size",
        "skipped_steps",
        "global_steps",
        "overflow",
        "dynamic_loss_scale",
        "checkpoint_version",
    }
)
"""Plain values of a part that say something about the whole run."""


@dataclass(slots=True)
class Folder:
    """A folder that is being read: parts are added one by one, and problems collected."""

    path: Path
    names: frozenset[str]
    tensors: list[TensorEntry] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    param_groups: tuple[Mapping[str, Any], ...] = ()
    training_args: Mapping[str, Any] | None = None
    trainer_state: Mapping[str, Any] | None = None
    scheduler: Mapping[str, Any] | None = None
    scaler: Mapping[str, Any] | None = None
    adapter_config: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    rng: bool = False
    step: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def json(self, name: str) -> dict[str, Any] | None:
        """A JSON object of the folder; None when it is not there or cannot be read (a problem is noted)."""
        if name not in self.names:
            return None
        try:
            value = read_json_object(inside(self.path, name))
        except Refused as refused:
            self.problems.append(refused.problem)
            return None
        self.files.append(self.path / name)
        return value

    def part(self, name: str, role: Role | None = None, prefix: str = "") -> Checkpoint | None:
        """A file or folder inside, read by its own format and added; None when it is missing or unreadable (a problem is noted).

        Args:
            name: path below the folder.
            role: what its weights are, where that follows from the file and not from their names.
            prefix: put before the names of its tensors, where several files use the same names.
        """
        try:
            place = inside(self.path, name)
        except Refused as refused:
            self.problems.append(refused.problem)
            return None
        found = read_part(place, self.problems)
        if found is not None:
            self.add(name, found, role=role, prefix=prefix)
        return found

    def add(self, name: str, found: Checkpoint, *, role: Role | None = None, prefix: str = "") -> None:
        """Add what was read of a part."""
        if name:
            self.parts[name] = found.format
        self.files.extend(found.files)
        for tensor in found.tensors:
            changed = replace(tensor, role=role) if role is not None and tensor.role is Role.WEIGHT else tensor
            self.tensors.append(replace(changed, name=f"{prefix}/{changed.name}") if prefix else changed)
        self.param_groups += found.param_groups
        self.training_args = self.training_args or found.training_args
        self.scheduler = self.scheduler or found.scheduler
        self.scaler = self.scaler or found.scaler
        self.rng = self.rng or found.rng
        self.step = found.step if self.step is None else self.step
        steps = [*self.extra.get("optimizer_steps", []), *found.extra.get("optimizer_steps", [])]
        self.extra.update({key: value for key, value in found.extra.items() if key in _KEPT})
        if steps:
            self.extra["optimizer_steps"] = steps

    def missing(self, name: str, why: str) -> None:
        """Note that a file is missing, and how that is known."""
        self.problems.append(Problem(kind=ProblemKind.MISSING, file=self.path / name, text=f"is missing: {why}"))

    def checkpoint(self, name: str) -> Checkpoint:
        """The whole folder as a checkpoint."""
        return Checkpoint(
            path=self.path,
            format=name,
            tensors=self._unique(),
            files=tuple(dict.fromkeys(self.files)),
            config=self.config,
            training_args=self.training_args,
            trainer_state=self.trainer_state,
            param_groups=self.param_groups,
            scheduler=self.scheduler,
            scaler=self.scaler,
            adapter_config=self.adapter_config,
            rng=self.rng,
            step=self.step,
            parts=self.parts,
            extra=self.extra,
            problems=tuple(self.problems),
        )

    def _unique(self) -> tuple[TensorEntry, ...]:
        """All tensors; a weight that two files hold is a problem, and the first one counts."""
        seen: dict[str, TensorEntry] = {}
        for tensor in self.tensors:
            first = seen.setdefault(f"{tensor.role}|{tensor.name}", tensor)
            if first is not tensor and tensor.role is Role.WEIGHT and first.file != tensor.file:
                text = f"{tensor.name!r} is in {first.file.name} and in {tensor.file.name}"
                self.problems.append(Problem(kind=ProblemKind.DUPLICATE, file=tensor.file, text=text, tensor=tensor.name))
        return tuple(self.tensors)


def first_of(names: Iterable[str], present: frozenset[str]) -> str | None:
    """The first of `names` that is present."""
    return next((name for name in names if name in present), None)
