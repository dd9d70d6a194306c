"""One run out of several files: who decides which setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from mpdoctor.check.dialect import Role
from mpdoctor.check.subject import ConfigFile
from mpdoctor.core.training import UNKNOWN, Origin, Setting, TrainingConfig

_ENGINE_DECIDES = frozenset((
    "precision_mode", "param_dtype", "master_dtype", "optimizer_state_dtype", "reduce_dtype", "grad_accum_dtype", "buffer_dtype", "distributed",
    "scaler", "init_scale", "static_scale", "growth_interval", "growth_factor", "backoff_factor", "hysteresis", "min_scale", "nan_check",
    "allreduce_op", "predivide", "lossy_communication",
))  # fmt: skip
"""Where the engine under the trainer has the last word; the launcher comes next, the trainer last."""
_TRAINER_FIRST = (Role.TRAINER, Role.LAUNCHER, Role.ENGINE, Role.MODEL, Role.PART, Role.HISTORY)
_ENGINE_FIRST = (Role.ENGINE, Role.LAUNCHER, Role.TRAINER, Role.MODEL, Role.PART, Role.HISTORY)
_MODEL_FIRST = (Role.MODEL, Role.TRAINER, Role.LAUNCHER, Role.ENGINE, Role.PART, Role.HISTORY)
_MODEL_DECIDES = frozenset(("model_family", "n_params", "model_dtype", "vocab_size", "hidden_size"))
_SURENESS = {Origin.EXPLICIT: 0, Origin.DERIVED: 1, Origin.DEFAULT: 2, Origin.UNKNOWN: 3}
_SETTINGS = tuple(f.name for f in fields(TrainingConfig) if f.name not in ("dialect", "files", "extra"))


def merged(files: Sequence[ConfigFile]) -> TrainingConfig:
    """The run's settings. What a file states beats what another one's framework defaults to."""
    if len(files) == 1:
        return _with_global_batch(files[0].config)
    main = min(files, key=lambda file: _TRAINER_FIRST.index(file.role))
    values: dict[str, Any] = {name: _decide(name, files) for name in _SETTINGS}
    extra = {name: setting for file in files for name, setting in file.config.extra.items()}
    return _with_global_batch(TrainingConfig(dialect=main.dialect, files=tuple(file.path for file in files), extra=extra, **values))


def _with_global_batch(config: TrainingConfig) -> TrainingConfig:
    """The global batch where it follows from micro batch, accumulation and ranks."""
    micro, steps, world = config.micro_batch, config.accumulation_steps, config.world_size
    if config.global_batch.known or micro.value is None or steps.value is None or world.value is None:
        return config
    product = micro.value * steps.value * world.value
    return replace(config, global_batch=Setting(product, Origin.DERIVED, micro.at, None, f"{micro.value} x {steps.value} x {world.value} ranks"))


def _decide(name: str, files: Sequence[ConfigFile]) -> Setting[Any]:
    order = _ENGINE_FIRST if name in _ENGINE_DECIDES else _MODEL_FIRST if name in _MODEL_DECIDES else _TRAINER_FIRST
    best, rank = UNKNOWN, (9, 9)
    for file in files:
        setting: Setting[Any] = getattr(file.config, name)
        if not setting.known and setting.at is None:
            continue
        place = order.index(file.role)
        # An engine's word on its own fields counts even where it is only its default; elsewhere explicit beats default.
        key = (place, _SURENESS[setting.origin]) if name in _ENGINE_DECIDES and setting.known else (_SURENESS[setting.origin] + 5, place)
        if key < rank:
            best, rank = setting, key
    return best
