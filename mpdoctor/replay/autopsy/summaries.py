"""What the autopsy says beyond single tensors: modules, optimizer, scaler, dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mpdoctor.replay.autopsy.result import DtypeStory, ModuleStats, OptimizerSummary, ScalerState, TensorStats
from mpdoctor.replay.checkpoints import Checkpoint, Role, TensorEntry, compute_dtype, settings_from
from mpdoctor.replay.checkpoints.checkpoint import FLOAT_DTYPES, MODEL_ROLES, MOMENT_ROLES
from mpdoctor.replay.checkpoints.numbers import scalar

_STEP_TENSORS_READ = 2000
"""Step counters read at most: they are equal in every run, but for parameters that joined later."""


def module_stats(tensors: Iterable[TensorStats]) -> tuple[ModuleStats, ...]:
    """The model's weights by module (the name without its last part), in file order."""
    groups: dict[str, list[TensorStats]] = {}
    for tensor in tensors:
        if tensor.entry.role in MODEL_ROLES:
            groups.setdefault(tensor.name.rpartition(".")[0], []).append(tensor)
    return tuple(_module(name, members) for name, members in groups.items())


def _module(name: str, members: list[TensorStats]) -> ModuleStats:
    numel = sum(t.numel for t in members)

    def weighted(counts: Iterable[tuple[TensorStats, int]]) -> float:
        return sum(t.share(count) * t.numel for t, count in counts) / numel if numel else 0.0

    known = all(t.unmoved is not None for t in members)
    return ModuleStats(
        name=name, numel=numel, nonfinite=sum(t.nonfinite for t in members), amax=max(t.amax for t in members),
        zeros=weighted((t, t.zeros) for t in members), unmoved=weighted((t, t.unmoved or 0) for t in members) if known else None,
        dtypes=tuple(dict.fromkeys(t.entry.dtype for t in members)),
    )  # fmt: skip


def optimizer_summary(checkpoint: Checkpoint, tensors: Iterable[TensorStats]) -> OptimizerSummary | None:
    """The optimizer's moments and step counts; None when there are none."""
    judged = [t for t in tensors if t.entry.role in MOMENT_ROLES]
    steps = _steps(checkpoint)
    if not judged and steps is None and not checkpoint.param_groups:
        return None
    first = tuple(t for t in judged if t.entry.role is not Role.SECOND_MOMENT)
    second = tuple(t for t in judged if t.entry.role is Role.SECOND_MOMENT)
    return OptimizerSummary(
        moment_dtypes=_bytes_by_dtype(t.entry for t in judged), first=first, second=second, steps=steps, underflowed=_underflowed(first, second)
    )


def _underflowed(first: tuple[TensorStats, ...], second: tuple[TensorStats, ...]) -> dict[str, float]:
    """By second moment: the share of elements (at least) whose second moment is zero while their first is not.

    Of n zeros in the second moment at most as many as the first moment has zeros are innocent.
    """
    partners = {t.name.rpartition(".")[0]: t for t in first if t.entry.role is Role.FIRST_MOMENT}
    found = {}
    for moment in second:
        partner = partners.get(moment.name.rpartition(".")[0])
        if partner is not None and partner.numel == moment.numel:
            share = moment.share(moment.zeros) - partner.share(partner.zeros)
            if share > 0:
                found[moment.name] = share
    return found


def _steps(checkpoint: Checkpoint) -> tuple[int, int] | None:
    plain = checkpoint.extra.get("optimizer_steps")
    counts = [int(n) for n in plain] if isinstance(plain, list) else []
    for tensor in checkpoint.by_role(Role.STEP)[:_STEP_TENSORS_READ]:
        value = scalar(tensor)
        if value is not None and value == value and abs(value) < 2**53:
            counts.append(int(value))
    return (min(counts), max(counts)) if counts else None


def scaler_state(checkpoint: Checkpoint) -> ScalerState | None:
    """The loss scaler's state, whichever framework saved it."""
    saved = checkpoint.scaler
    if not saved:
        return None

    def number(*names: str) -> float | None:
        return next((float(saved[n]) for n in names if isinstance(saved.get(n), int | float) and not isinstance(saved.get(n), bool)), None)

    tracker, interval = number("_growth_tracker", "growth_tracker"), number("growth_interval", "scale_window")
    return ScalerState(
        scale=number("scale", "cur_scale", "_scale"),
        growth_tracker=None if tracker is None else int(tracker),
        growth_interval=None if interval is None else int(interval),
        growth_factor=number("growth_factor", "scale_factor"),
        backoff_factor=number("backoff_factor"),
        dynamic=saved.get("dynamic") if isinstance(saved.get("dynamic"), bool) else None,
    )


def dtype_story(checkpoint: Checkpoint) -> DtypeStory:
    """The dtype of each part of the run."""
    return DtypeStory(
        config=config_dtype(checkpoint.config),
        stored=_bytes_by_dtype(checkpoint.by_role(Role.WEIGHT)),
        training=compute_dtype(settings_from(checkpoint)),
        adapter=_bytes_by_dtype(checkpoint.by_role(Role.ADAPTER)),
        master=_bytes_by_dtype(checkpoint.by_role(Role.MASTER)),
        moments=_bytes_by_dtype(checkpoint.by_role(*MOMENT_ROLES)),
    )


def config_dtype(config: Mapping[str, Any]) -> str | None:
    """The weights' dtype by config.json: `dtype` (transformers 5) or `torch_dtype` (4), of the text model where each part has its own."""
    for key in ("dtype", "torch_dtype"):
        value = config.get(key)
        if isinstance(value, dict):
            value = value.get("") or value.get("text_config") or next(iter(value.values()), None)
        if isinstance(value, str):
            return value.removeprefix("torch.")
    nested = config.get("text_config")
    return config_dtype(nested) if isinstance(nested, dict) and nested is not config else None


def _bytes_by_dtype(entries: Iterable[TensorEntry]) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in entries:
        if entry.dtype in FLOAT_DTYPES:
            found[entry.dtype] = found.get(entry.dtype, 0) + entry.extent
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
