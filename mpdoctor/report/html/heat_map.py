"""Largest magnitudes as a table of modules by steps and phases, coloured by binary exponent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mpdoctor.core.numerics import FP16
from mpdoctor.report.measured import ModuleAmax
from mpdoctor.report.numbers import dtype, number

MOST_ROWS = 60
MOST_COLUMNS = 24
_LOWEST, _HIGHEST = -14.0, math.log2(FP16.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: what it says, how strongly it is coloured (0 to 1), and its full text."""

    text: str
    heat: float
    bad: bool
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Rows are modules in the order of their first appearance; `left_out` counts the modules that are not shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    left_out: int


def heat_map(values: Sequence[ModuleAmax]) -> HeatMap | None:
    """The map, or None without values. With many modules: those with bad values and the largest ones; with many steps: the last ones."""
    if not values:
        return None
    order = {"forward": 0, "loss": 1, "backward": 2}
    keys = sorted({(v.step, order.get(v.phase, 3), v.phase) for v in values})[-MOST_COLUMNS:]
    cells = {(v.module, (v.step, order.get(v.phase, 3), v.phase)): _cell(v) for v in values}
    modules = list(dict.fromkeys(v.module for v in values))
    if len(modules) > MOST_ROWS:
        worst = {module: max(_rank(v) for v in values if v.module == module) for module in modules}
        kept = set(sorted(modules, key=lambda module: worst[module], reverse=True)[:MOST_ROWS])
    else:
        kept = set(modules)
    rows = tuple((module or "(root)", tuple(cells.get((module, key)) for key in keys)) for module in modules if module in kept)
    one_step = len({v.step for v in values}) == 1
    return HeatMap(columns=tuple(phase if one_step else f"{step} {phase}" for step, _, phase in keys), rows=rows, left_out=len(modules) - len(kept))


def _rank(value: ModuleAmax) -> tuple[int, float]:
    bad = value.nonfinite > 0 or not math.isfinite(value.amax)
    return (int(bad), value.amax if math.isfinite(value.amax) else 0.0)


def _cell(value: ModuleAmax) -> Cell:
    bad = value.nonfinite > 0 or not math.isfinite(value.amax)
    finite = math.isfinite(value.amax)
    exponent = math.log2(value.amax) if finite and value.amax > 0 else None
    heat = 0.0 if exponent is None else min(1.0, max(0.0, (exponent - _LOWEST) / (_HIGHEST - _LOWEST)))
    text = "0" if finite and value.amax == 0 else str(round(exponent)) if exponent is not None else str(value.amax)
    if bad and finite:
        text += " ✗"
    hint = f"largest magnitude {number(value.amax)}, {dtype(value.dtype)}" + (f", {value.nonfinite} not finite" if value.nonfinite else "")
    return Cell(text=text, heat=round(heat, 2), bad=bad, hint=hint)
