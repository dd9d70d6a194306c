"""What one pickled file holds: its tensors with names, roles and places, and the plain parts of its training state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind, Role, TensorEntry
from mpdoctor.replay.checkpoints.names import printable
from mpdoctor.replay.checkpoints.pickles import Danger, Global, danger_of, plain
from mpdoctor.replay.checkpoints.pickles.tensors import StoredTensor, UnreadTensor, tensor_of, walk_tensors
from mpdoctor.replay.checkpoints.roles import role_of
from mpdoctor.replay.checkpoints.training_state import TrainingState, is_optimizer, settings_of

Locate = Callable[[StoredTensor], tuple[int, bytes | None]]
"""First byte of a tensor in its file (and its values where they lie inside the pickle). Raises ValueError with the reason."""

_WRAPPERS = ("state_dict", "model", "model_state_dict", "module", "model_state", "net", "network")
"""Keys under which training loops save the model's state dict."""


@dataclass(slots=True)
class Contents:
    """What one pickled file holds."""

    tensors: list[TensorEntry] = field(default_factory=list)
    state: TrainingState = field(default_factory=TrainingState)
    problems: list[Problem] = field(default_factory=list)


def contents_of(value: Any, path: Path, locate: Locate, number: Callable[[TensorEntry], float | None]) -> Contents:
    """Take a pickled value apart.

    Args:
        value: root of the pickle.
        path: the file.
        locate: where a tensor's bytes are.
        number: the value of a tensor with one element, for settings that are stored as tensors.
    """
    found = Contents()
    wrapped = isinstance(value, dict) and any(isinstance(value.get(key), dict) for key in _WRAPPERS)
    optimizer = is_optimizer(value)

    def role(parts: tuple[str, ...]) -> Role:
        if optimizer:
            return role_of(("optimizer", *parts), Role.OTHER)
        return role_of(parts, Role.OTHER if wrapped and parts[:1] and parts[0] not in _WRAPPERS else Role.WEIGHT)

    for parts, tensor in walk_tensors(value):
        entry = _entry(parts, tensor, path, locate, role(parts), found.problems)
        if entry is not None:
            found.tensors.append(entry)

    def shown(record: Any) -> Any:
        tensor = tensor_of(record)
        if tensor is None:
            return None
        entry = _entry((), tensor, path, locate, Role.OTHER, [])
        if entry is not None and entry.numel == 1:
            return number(entry)
        return f"<tensor {entry.dtype}{list(entry.shape)}>" if entry is not None else "<tensor>"

    found.state = settings_of(value, lambda v: plain(v, shown))
    return found


def _entry(
    parts: tuple[str, ...], tensor: StoredTensor | UnreadTensor, path: Path, locate: Locate, role: Role, problems: list[Problem]
) -> TensorEntry | None:
    name = ".".join(parts)
    if isinstance(tensor, UnreadTensor):
        problems.append(Problem(kind=ProblemKind.NOT_JUDGED, file=path, text=f"{name!r}: {tensor.why}", tensor=name))
        return None
    try:
        offset, inline = locate(tensor)
    except ValueError as error:
        kind = ProblemKind.TRUNCATED if "ends" in str(error) else ProblemKind.MALFORMED
        problems.append(Problem(kind=kind, file=path, text=f"{name!r}: {error}", tensor=name))
        return None
    return TensorEntry(
        name=printable(".".join(_strip_wrapper(parts) if role in (Role.WEIGHT, Role.ADAPTER) else parts)),
        dtype=tensor.dtype,
        shape=tensor.shape,
        role=role,
        file=path,
        offset=offset,
        strides=tensor.strides,
        parameter=_parameter(parts, role),
        inline=inline,
    )


def _strip_wrapper(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Parameter names without the key that the training loop wrapped the state dict in."""
    while len(parts) > 1 and parts[0] in _WRAPPERS:
        parts = parts[1:]
    return parts


def _parameter(parts: tuple[str, ...], role: Role) -> str | None:
    """Name of the parameter that optimizer state belongs to, where it is keyed by name (FSDP) instead of by number."""
    if role in (Role.WEIGHT, Role.ADAPTER, Role.OTHER, Role.RNG, Role.SCALER) or "state" not in parts[:-2]:
        return None
    key = parts[parts.index("state") + 1]
    return None if key.isdigit() else key


def import_problems(imports: tuple[Global, ...], path: Path) -> list[Problem]:
    """Problems for what a real unpickler would import from the file."""
    runs = [str(g) for g in imports if danger_of(g) is Danger.RUNS_CODE]
    foreign = [str(g) for g in imports if danger_of(g) is Danger.FOREIGN]
    found = []
    if runs:
        text = f"unpickling it would run {_some(runs)}; mpdoctor read it without running anything"
        found.append(Problem(kind=ProblemKind.RUNS_CODE, file=path, text=text))
    if foreign:
        found.append(Problem(kind=ProblemKind.FOREIGN_CODE, file=path, text=f"unpickling it would import {_some(foreign)}"))
    return found


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def as_checkpoint(path: Path, name: str, found: Contents, problems: list[Problem]) -> Checkpoint:
    """The checkpoint of one pickled file."""
    state = found.state
    return Checkpoint(
        path=path,
        format=name,
        tensors=tuple(found.tensors),
        files=(path,),
        training_args=state.training_args,
        param_groups=state.param_groups,
        scheduler=state.scheduler,
        scaler=state.scaler,
        rng=state.rng,
        step=state.step,
        extra={"keys": state.keys, **state.extra},
        problems=tuple(problems),
    )
