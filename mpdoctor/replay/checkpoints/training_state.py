"""The plain parts of a saved training state: optimizer groups, scaler, scheduler, settings, step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpdoctor.replay.checkpoints.pickles import Global, Record, plain

_SETTINGS_KEYS = ("hyper_parameters", "args", "training_args", "hparams", "cfg", "config", "hyper_params", "options")
_STEP_KEYS = ("global_step", "global_steps", "iteration", "num_updates", "step", "steps", "iter", "n_iter")
_MAX_DEPTH = 5
_MAX_NODES = 50_000


@dataclass(slots=True)
class TrainingState:
    """What was found. `extra` has the small plain values at the top level, and `ds_config`, `optimizer_steps`."""

    training_args: dict[str, Any] | None = None
    param_groups: tuple[dict[str, Any], ...] = ()
    scheduler: dict[str, Any] | None = None
    scaler: dict[str, Any] | None = None
    rng: bool = False
    step: int | None = None
    keys: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


def settings_of(value: Any, to_plain: Callable[[Any], Any] = plain) -> TrainingState:
    """Take the plain parts out of a pickled value.

    Args:
        value: root of the pickle: a whole training state, the state of one part, or a settings object.
        to_plain: makes plain values; the caller's knows how to read tensors with one element.
    """
    found = TrainingState()
    if isinstance(value, Record):
        if isinstance(value.of, Global) and isinstance(value.state, dict) and "_parameters" not in value.state:
            shown = to_plain(value)
            found.training_args = shown if isinstance(shown, dict) else None
        return found
    if not isinstance(value, dict):
        return found
    found.keys = tuple(str(key)[:100] for key in list(value)[:200])
    for part in _parts(value):
        _note(part, found, to_plain)
    if found.scaler is None and isinstance(value.get("loss_scale"), int | float):
        found.scaler = {"scale": value["loss_scale"]}
    _top_level(value, found, to_plain)
    return found


def is_optimizer(value: Any) -> bool:
    """Whether a value is an optimizer's state dict."""
    return isinstance(value, dict) and isinstance(value.get("param_groups"), list) and "state" in value


def is_scaler(fields: Mapping[Any, Any]) -> bool:
    """Whether these are the fields of a loss scaler: torch's and Megatron's state dicts, DeepSpeed's objects."""
    if "cur_scale" in fields:
        return True
    return "scale" in fields and bool({"_growth_tracker", "growth_tracker", "growth_interval"} & set(fields))


def is_scheduler(value: Mapping[Any, Any]) -> bool:
    """Whether a value is a learning-rate scheduler's state dict."""
    return "last_epoch" in value and ("_step_count" in value or "base_lrs" in value)


def _parts(root: Any) -> Iterator[Mapping[Any, Any]]:
    """All dictionaries and instances' fields near the root, the root first."""
    queue: list[tuple[Any, int]] = [(root, 0)]
    seen: set[int] = set()
    for _ in range(_MAX_NODES):
        if not queue:
            return
        value, depth = queue.pop(0)
        fields = value.state if isinstance(value, Record) else value
        if id(fields) in seen:
            continue
        seen.add(id(fields))
        if isinstance(fields, dict):
            yield fields
        children = list(fields.values()) if isinstance(fields, dict) else fields if isinstance(fields, list) else []
        if depth < _MAX_DEPTH:
            queue.extend((child, depth + 1) for child in children[:10_000] if isinstance(child, dict | list) or _has_fields(child))


def _has_fields(value: Any) -> bool:
    return isinstance(value, Record) and isinstance(value.state, dict)


def _note(part: Mapping[Any, Any], found: TrainingState, to_plain: Callable[[Any], Any]) -> None:
    if is_optimizer(part):
        found.param_groups += _groups(to_plain(part["param_groups"]))
        steps = _plain_steps(part["state"])
        if steps:
            found.extra["optimizer_steps"] = [*found.extra.get("optimizer_steps", []), *steps]
        if found.scaler is None and isinstance(part.get("loss_scale"), int | float):
            found.scaler = {"scale": part["loss_scale"]}
    elif found.scaler is None and is_scaler(part):
        shown = to_plain(dict(part))
        found.scaler = {**shown, "dynamic": "cur_iter" in part} if "cur_scale" in part else shown
    elif found.scheduler is None and is_scheduler(part):
        found.scheduler = to_plain(dict(part))


def _top_level(value: dict[Any, Any], found: TrainingState, to_plain: Callable[[Any], Any]) -> None:
    for key in _SETTINGS_KEYS:
        if found.training_args is None and isinstance(value.get(key), dict | Record):
            shown = to_plain(value[key])
            found.training_args = shown if isinstance(shown, dict) else None
    if isinstance(value.get("ds_config"), dict):
        found.extra["ds_config"] = to_plain(value["ds_config"])
    for key in _STEP_KEYS:
        step = to_plain(value.get(key))
        if found.step is None and isinstance(step, int | float) and not isinstance(step, bool) and abs(step) < 2**53:
            found.step = int(step)
    found.rng = any("rng" in key.lower() or "random" in key.lower() for key in value if isinstance(key, str))
    for key, item in value.items():
        if isinstance(key, str) and (item is None or isinstance(item, bool | int | float) or (isinstance(item, str) and len(item) <= 1000)):
            found.extra[key] = item


def _plain_steps(states: Any) -> list[int]:
    """Lowest and highest step count where they are plain numbers: torch before 1.12, and other optimizers still."""
    steps = [s["step"] for s in states.values() if isinstance(s, dict) and isinstance(s.get("step"), int)] if isinstance(states, dict) else []
    return [min(steps), max(steps)] if steps else []


def _groups(groups: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(groups, list):
        return ()
    return tuple({**group, "params": len(group.get("params") or ())} for group in groups if isinstance(group, dict))
