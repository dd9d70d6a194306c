"""Loss, gradient norm, loss scale and learning rate over the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mpdoctor.core.report import Report, StepRecord
from mpdoctor.report.html.charts.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Drawing, Scale
from mpdoctor.report.numbers import count, number

CURVES = (("loss", "Loss"), ("grad_norm", "Gradient norm"), ("scale", "Loss scale"), ("lr", "Learning rate"))

MOST_POINTS = 600
"""More steps than this are drawn as the lowest and highest of their neighbours."""


def history(report: Report) -> list[Chart]:
    """One chart for each quantity that was recorded in two steps or more."""
    charts = []
    for field, title in CURVES:
        points = [(record, value) for record in report.steps if (value := getattr(record, field)) is not None]
        if len(points) > 1:
            charts.append(_chart(title, points, report.steps))
    return charts


def _chart(title: str, points: Sequence[tuple[StepRecord, float]], records: Sequence[StepRecord]) -> Chart:
    finite = [value for _, value in points if math.isfinite(value)]
    first, last = min(r.step for r in records), max(r.step for r in records)
    across = Scale(low=first, high=last if last > first else first + 1, start=LEFT, end=WIDTH - RIGHT)
    description = _describe(title, points, records)
    drawing = Drawing(title, description)
    replayed = [record.step for record in records if record.source == "replay"]
    if replayed and len(replayed) < len(records):
        drawing.box(
            across(min(replayed)) - 3,
            TOP,
            across(max(replayed)) - across(min(replayed)) + 6,
            HEIGHT - TOP - BOTTOM,
            "replayed",
            "replayed by mpdoctor",
        )
    drawing.line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")
    for record in records:
        if record.skipped:
            drawing.line(across(record.step), HEIGHT - BOTTOM, across(record.step), HEIGHT - BOTTOM - 8, "skipped")
    if finite:
        up = Scale.vertical(finite)
        for run in _runs(points):
            drawing.curve([(across(step), up(value)) for step, value in run], "curve")
        drawing.text(LEFT - 4, TOP + 4, number(max(finite), 3), anchor="end")
        drawing.text(LEFT - 4, HEIGHT - BOTTOM, number(min(finite), 3), anchor="end")
        if up.logarithmic:
            drawing.text(LEFT - 4, (HEIGHT - BOTTOM + TOP) / 2 + 4, "log", "label faint", anchor="end")
    for record, value in points:
        if not math.isfinite(value):
            drawing.cross(across(record.step), TOP, "bad")
    drawing.text(LEFT, HEIGHT - 6, f"step {first}")
    drawing.text(WIDTH - RIGHT, HEIGHT - 6, str(last), anchor="end")
    return Chart(title=title, description=description, svg=drawing.finish())


def _runs(points: Sequence[tuple[StepRecord, float]]) -> list[list[tuple[int, float]]]:
    """Stretches of one source without a non-finite value; long ones are thinned to the extremes of neighbouring steps."""
    runs: list[list[tuple[int, float]]] = [[]]
    source = ""
    for record, value in points:
        if runs[-1] and (record.source != source or not math.isfinite(value)):
            runs.append([])
        if math.isfinite(value):
            runs[-1].append((record.step, value))
        source = record.source
    return [_thinned(run) for run in runs if run]


def _thinned(run: list[tuple[int, float]]) -> list[tuple[int, float]]:
    if len(run) <= MOST_POINTS:
        return run
    size = -(-len(run) * 2 // MOST_POINTS)
    kept: list[tuple[int, float]] = []
    for start in range(0, len(run), size):
        share = run[start : start + size]
        extremes = {min(share, key=lambda p: p[1]), max(share, key=lambda p: p[1])}
        kept += sorted(extremes)
    return kept


def _describe(title: str, points: Sequence[tuple[StepRecord, float]], records: Sequence[StepRecord]) -> str:
    finite = [value for _, value in points if math.isfinite(value)]
    bad = [record.step for record, value in points if not math.isfinite(value)]
    skipped = sum(bool(record.skipped) for record in records)
    parts = [f"{count(len(points), 'value')} from step {points[0][0].step} to {points[-1][0].step}"]
    if finite:
        parts.append(f"between {number(min(finite))} and {number(max(finite))}, {number(finite[-1])} at the end")
    if bad:
        parts.append(f"not finite in {count(len(bad), 'step')}, first in step {bad[0]}")
    if skipped:
        parts.append(f"{count(skipped, 'step')} skipped by the scaler")
    return "; ".join(parts)
