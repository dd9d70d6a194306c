"""Loss, gradient norm, scale and learning rate over the steps: curves, and the rows around the failure as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mpdoctor.core.report import Report, StepRecord
from mpdoctor.report.numbers import number, sparkline
from mpdoctor.report.sections.ink import Ink
from mpdoctor.report.sections.layout import Block, Grid, Text

ROWS = 6
"""Rows of the table; from more steps than this curves are drawn too."""

QUANTITIES = (("loss", "loss"), ("grad norm", "grad_norm"), ("scale", "scale"), ("lr", "lr"))
_SOURCES = {"history": "log", "replay": "replay"}


def steps(report: Report, ink: Ink) -> list[Block]:
    """Curves when there are enough steps to make one, then a table."""
    records = report.steps
    if not records or ink.quiet:
        return []
    parts: list[Block] = [ink.title("Steps", _extent(records))]
    if len(records) > ROWS:
        parts += [_curves(records, ink), Text()]
    parts.append(_table(shown_rows(records), ink))
    return parts


def shown_rows(records: Sequence[StepRecord]) -> Sequence[StepRecord]:
    """The rows around the first value that is not finite in the last source (the replay, where there was one); without one the last."""
    last = records[-1].source
    bad = next(
        (i for i, r in enumerate(records) if r.source == last and not all(math.isfinite(v) for v in (r.loss, r.grad_norm) if v is not None)), None
    )
    if bad is None:
        return records[-ROWS:]
    start = max(0, min(bad - ROWS // 2, len(records) - ROWS))
    return records[start : start + ROWS]


def _extent(records: Sequence[StepRecord]) -> str:
    logged = sum(record.source == "history" for record in records)
    skipped = sum(bool(record.skipped) for record in records)
    parts = [f"{records[0].step} to {records[-1].step}" if len(records) > 1 else ""]
    if logged:
        parts.append(f"{logged} from the run's log, {len(records) - logged} replayed")
    if skipped:
        parts.append(f"{skipped} skipped by the scaler")
    return "; ".join(part for part in parts if part)


def _curves(records: Sequence[StepRecord], ink: Ink) -> Block:
    """One curve per quantity; log and replay apart, because they need not have seen the same batches."""
    sources = list(dict.fromkeys(record.source for record in records))
    room = max(10, min(ink.width - 44, 60))
    rows = []
    for label, field in QUANTITIES:
        for source in sources:
            values = [getattr(record, field) for record in records if record.source == source]
            present = [value for value in values if value is not None]
            if len(present) > 1 and len(set(present)) > 1:
                name = f"{label}, {_SOURCES[source]}" if len(sources) > 1 else label
                rows.append([ink(name, "dim"), ink(number(present[0])), ink(sparkline(values, room), "cyan"), ink(number(present[-1]))])
    return Grid.fitted(rows, gap=2, right=(1,))


def _table(records: Sequence[StepRecord], ink: Ink) -> Block:
    mixed = len({record.source for record in records}) > 1
    shown = [(label, field) for label, field in QUANTITIES if any(getattr(record, field) is not None for record in records)]
    rows = [[ink("step", "dim"), *(ink(label, "dim") for label, _ in shown), ink("")]]
    for record in records:
        values = [getattr(record, field) for _, field in shown]
        remarks = [text for text in ("skipped" if record.skipped else "", _SOURCES[record.source] if mixed else "") if text]
        cells = [ink(number(value), "" if value is None or math.isfinite(value) else "bold red") for value in values]
        rows.append([ink(str(record.step)), *cells, ink(", ".join(remarks), "dim")])
    return Grid.fitted(rows, gap=3, right=range(len(shown) + 1))
