"""What a pickled training state holds: tensors with roles, optimizer groups, scaler, scheduler, settings, step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind, Role, TensorEntry
from mpdoctor.replay.checkpoints.pickles import Danger, Global, Record, danger_of, plain
from mpdoctor.replay.checkpoints.pickles.tensors import StoredTensor, UnreadTensor, tensor_of, walk_tensors
from mpdoctor.replay.checkpoints.roles import role_of

Locate = Callable[[StoredTensor], tuple[int, bytes | None]]
"""First byte of a tensor in its file (and its values where they lie inside the pickle). Raises ValueError with the reason."""

SETTINGS_KEYS = ("hyper_parameters", "args", "training_args", "hparams", "cfg", "config", "hyper_params", "options")
_STEP_KEYS = ("global_step", "step", "iteration", "iter", "global_steps", "num_updates", "steps", "n_iter")
_SCHEDULER_KEYS = (
    "lr_scheduler",
    "scheduler",
    "lr_schedulers",
    "schedulers",
    "scheduler_state_dict",
    "lr_scheduler_state_dict",
    "opt_param_scheduler",
)
_SCALER_KEYS = ("scaler", "grad_scaler", "scaler_state_dict", "amp", "amp_scaler", "loss_scaler")
_OPTIMIZER_KEYS = ("optimizer", "optimizer_state_dict", "optimizer_states", "optimizers", "optim", "opt", "optimizer_state")
_WRAPPERS = ("state_dict", "model", "model_state_dict", "module", "model_state", "net", "network")


@dataclass(slots=True)
class Contents:
    """What one pickled file holds."""

    tensors: list[TensorEntry] = field(default_factory=list)
    training_args: dict[str, Any] | None = None
    param_groups: tuple[dict[str, Any], ...] = ()
    scheduler: dict[str, Any] | None = None
    scaler: dict[str, Any] | None = None
    rng: bool = False
    step: int | None = None
    keys: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
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
    default = Role.OTHER if is_optimizer(value) else Role.WEIGHT
    for parts, tensor in walk_tensors(value):
        entry = _entry(parts, tensor, path, locate, default, found.problems)
        if entry is not None:
            found.tensors.append(entry)

    def shown(record: Any) -> Any:
        tensor = tensor_of(record)
        if tensor is None:
            return None
        entry = _entry((), tensor, path, locate, default, [])
        if entry is not None and entry.numel == 1:
            return number(entry)
        return f"<tensor {entry.dtype}{list(entry.shape)}>" if entry is not None else "<tensor>"

    _settings(value, found, lambda v: plain(v, shown))
    return found


def _entry(
    parts: tuple[str, ...], tensor: StoredTensor | UnreadTensor, path: Path, locate: Locate, default: Role, problems: list[Problem]
) -> TensorEntry | None:
    name = ".".join(parts)
    if isinstance(tensor, UnreadTensor):
        problems.append(Problem(kind=ProblemKind.NOT_JUDGED, file=path, text=f"{name!r}: {tensor.why}", tensor=name))
        return None
    try:
        offset, inline = locate(tensor)
    except ValueError as error:
        truncated = "ends" in str(error)
        kind = ProblemKind.TRUNCATED if truncated else ProblemKind.MALFORMED
        problems.append(Problem(kind=kind, file=path, text=f"{name!r}: {error}", tensor=name))
        return None
    role = (
        Role.RNG
        if tensor.dtype == "uint8" and len(parts) <= 1 and default is Role.WEIGHT and name in ("cpu", "cuda")
        else role_of(_role_path(parts), default)
    )
    parameter = _parameter(parts, role)
    stripped = _strip_wrapper(parts) if role in (Role.WEIGHT, Role.ADAPTER) else parts
    return TensorEntry(
        name=".".join(stripped), dtype=tensor.dtype, shape=tensor.shape, role=role, file=path, offset=offset, strides=tensor.strides,
        parameter=parameter, inline=inline,
    )  # fmt: skip


def _role_path(parts: tuple[str, ...]) -> tuple[str, ...]:
    return ("optimizer", *parts) if parts and parts[0] == "state" else parts


def _strip_wrapper(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Parameter names without the key that the training loop wrapped the state dict in."""
    while len(parts) > 1 and parts[0] in _WRAPPERS:
        parts = parts[1:]
    return parts


def _parameter(parts: tuple[str, ...], role: Role) -> str | None:
    """Name of the parameter that optimizer state belongs to, where it is keyed by name (FSDP) instead of by number."""
    if role in (Role.WEIGHT, Role.ADAPTER, Role.OTHER, Role.RNG, Role.SCALER) or "state" not in parts or len(parts) < 3:
        return None
    key = parts[parts.index("state") + 1]
    return None if key.isdigit() else key


def is_optimizer(value: Any) -> bool:
    """Whether a value is an optimizer's state dict."""
    return isinstance(value, dict) and "param_groups" in value and "state" in value


def is_scaler(value: Any) -> bool:
    """Whether a value is a GradScaler's state dict, or DeepSpeed's loss scaler."""
    return isinstance(value, Mapping) and "scale" in value and ("_growth_tracker" in value or "growth_interval" in value)


def is_scheduler(value: Any) -> bool:
    """Whether a value is a learning-rate scheduler's state dict."""
    return isinstance(value, Mapping) and "last_epoch" in value and ("_step_count" in value or "base_lrs" in value)


def _settings(value: Any, found: Contents, to_plain: Callable[[Any], Any]) -> None:
    if isinstance(value, Record) and isinstance(value.of, Global) and isinstance(value.state, dict):
        shown = to_plain(value)
        if isinstance(shown, dict) and not found.tensors:
            found.training_args = shown
        return
    if not isinstance(value, dict):
        return
    found.keys = tuple(str(key)[:100] for key in list(value)[:200])
    if is_optimizer(value):
        found.param_groups = _groups(to_plain(value["param_groups"]))
        found.extra["optimizer_steps"] = _plain_steps(value)
    elif is_scaler(value):
        found.scaler = to_plain(value)
    elif is_scheduler(value):
        found.scheduler = to_plain(value)
    else:
        _nested(value, found, to_plain)


def _nested(value: dict[Any, Any], found: Contents, to_plain: Callable[[Any], Any]) -> None:
    for key in _OPTIMIZER_KEYS:
        states = value.get(key)
        for state in states if isinstance(states, list) else [states]:
            inner = state.get("optimizer") if isinstance(state, dict) and isinstance(state.get("optimizer"), dict) else state
            if isinstance(inner, dict) and "param_groups" in inner:
                found.param_groups += _groups(to_plain(inner["param_groups"]))
                found.extra["optimizer_steps"] = [*found.extra.get("optimizer_steps", []), *_plain_steps(inner)]
    for key in _SCHEDULER_KEYS:
        states = value.get(key)
        state = states[0] if isinstance(states, list) and states else states
        if found.scheduler is None and isinstance(state, dict):
            found.scheduler = to_plain(state)
    for key in (*_SCALER_KEYS, *(k for k in value if isinstance(k, str) and "Precision" in k)):
        if found.scaler is None and is_scaler(value.get(key)):
            found.scaler = to_plain(value[key])
    for key in SETTINGS_KEYS:
        if found.training_args is None and value.get(key) is not None:
            shown = to_plain(value[key])
            if isinstance(shown, dict):
                found.training_args = shown
    for key in _STEP_KEYS:
        step = to_plain(value.get(key))
        if found.step is None and isinstance(step, int | float) and not isinstance(step, bool):
            found.step = int(step)
    found.rng = any("rng" in key.lower() or key == "random_states" for key in value if isinstance(key, str))
    kept = {key: to_plain(item) for key, item in value.items() if isinstance(key, str) and _is_small(item)}
    found.extra.update(kept)


def _plain_steps(optimizer: dict[Any, Any]) -> list[int]:
    """Lowest and highest step count where they are plain numbers: torch before 1.12, and other optimizers still."""
    states = optimizer.get("state")
    steps = [s["step"] for s in states.values() if isinstance(s, dict) and isinstance(s.get("step"), int)] if isinstance(states, dict) else []
    return [min(steps), max(steps)] if steps else []


def _groups(groups: Any) -> tuple[dict[str, Any], ...]:
    return (
        tuple({**group, "params": len(group.get("params") or ())} for group in groups if isinstance(group, dict)) if isinstance(groups, list) else ()
    )


def _is_small(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 1000)


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
    return Checkpoint(
        path=path,
        format=name,
        tensors=tuple(found.tensors),
        files=(path,),
        training_args=found.training_args,
        param_groups=found.param_groups,
        scheduler=found.scheduler,
        scaler=found.scaler,
        rng=found.rng,
        step=found.step,
        extra={"keys": found.keys, **found.extra},
        problems=tuple(problems),
    )
