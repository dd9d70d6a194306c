"""The autopsy in a report: what is stored, in a few lines, and module by module."""

from __future__ import annotations

from typing import Any

from mpdoctor.replay.activation_range import activation_measurements
from mpdoctor.replay.autopsy.result import AutopsyResult, ModuleStats
from mpdoctor.replay.autopsy.series import Point
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, percent
from mpdoctor.replay.checkpoints.checkpoint import MODEL_ROLES

_MODULES = 1000
"""Modules listed at most, the worst first."""


def stored_measurements(evidence: CheckpointEvidence) -> dict[str, Any]:
    """Measurements of the stored numbers by name, as plain values; empty without an autopsy.

    `stored_modules` is a list of dictionaries: module, values, nonfinite, amax, and the shares zeros and unmoved
    (0 to 1; `unmoved` is None where no learning rate is known). The others are sentences.
    """
    result = evidence.autopsy
    if result is None or not result.tensors:
        return {}
    found: dict[str, Any] = {"stored_weights": _weights(result), "stored_optimizer": _optimizer(result), "stored_scale": _scale(result)}
    series = evidence.series
    if series is not None:
        found["checkpoints"] = [_point(point) for point in series.points]
    found |= activation_measurements(evidence.activations)
    found["stored_modules"] = [_module(m) for m in sorted(result.modules, key=_badness)[:_MODULES]]
    return {name: value for name, value in found.items() if value}


def _weights(result: AutopsyResult) -> str:
    weights = result.by_role(*MODEL_ROLES)
    if not weights:
        return ""
    numel, counted = sum(t.numel for t in weights), sum(t.counted for t in weights)
    largest = max(weights, key=lambda t: t.amax)
    zeros = sum(t.share(t.zeros) * t.numel for t in weights) / numel if numel else 0.0
    parts = [f"{len(weights)} tensors, {numel:,} values in {_dtypes({**result.dtypes.stored, **result.dtypes.adapter, **result.dtypes.master})}"]
    parts.append(f"largest {largest.amax:.4g} ({largest.name}), {percent(zeros) if zeros else 'none'} zero")
    if result.lr is not None and all(t.unmoved is not None for t in weights):
        unmoved = sum(t.share(t.unmoved) * t.numel for t in weights) / numel if numel else 0.0
        parts.append(f"{percent(unmoved) if unmoved else 'none'} that a step of {result.lr:g} does not move")
    if counted < numel:
        parts.append(f"shares by a sample of {counted:,}")
    return ", ".join(parts)


def _optimizer(result: AutopsyResult) -> str:
    state = result.optimizer
    if state is None or not state.first:
        return ""
    parts = [f"{len(state.first) + len(state.second)} moments in {_dtypes(state.moment_dtypes)}"]
    if state.steps is not None:
        low, high = state.steps
        counted = str(high) if low == high else f"{low} to {high}"
        parts.append(f"{counted} {'step' if high == 1 else 'steps'} taken")
    if state.second:
        parts.append(f"largest second moment {max(t.amax for t in state.second):.3g}")
    return ", ".join(parts)


def _scale(result: AutopsyResult) -> str:
    scaler = result.scaler
    if scaler is None or scaler.scale is None:
        return ""
    since = f", {scaler.growth_tracker} good steps since it last changed" if scaler.growth_tracker is not None else ""
    return f"{scaler.scale:g}{since}"


def _dtypes(by_dtype: Any) -> str:
    return " and ".join(by_dtype) or "no floating-point format"


def _point(point: Point) -> str:
    if point.error is not None:
        return f"{point.path.name} cannot be read"
    parts = []
    if point.nonfinite or point.nonfinite_moments:
        parts.append(f"{(point.nonfinite or 0) + (point.nonfinite_moments or 0):,} non-finite")
    if point.amax is not None:
        parts.append(f"largest weight {point.amax:.3g}")
    if point.scale is not None:
        parts.append(f"scale {point.scale:g}")
    return f"{point.path.name}: {', '.join(parts) or 'no weights'}"


def _module(module: ModuleStats) -> dict[str, Any]:
    return {
        "module": module.name,
        "dtype": ", ".join(module.dtypes),
        "values": module.numel,
        "nonfinite": module.nonfinite,
        "amax": module.amax,
        "zeros": module.zeros,
        "unmoved": module.unmoved,
    }


def _badness(module: ModuleStats) -> tuple[int, float, str]:
    return (-module.nonfinite, -module.amax, module.name)
