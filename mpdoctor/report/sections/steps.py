"""Loss, gradient norm, scale and learning rate over the steps: curves, and the last rows as numbers."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mpdoctor.core.report import Report, StepRecord
from mpdoctor.report.numbers import number, sparkline
from mpdoctor.report.sections.ink import Ink

LAST_ROWS = 6
_CURVES = (("loss", "loss"), ("grad norm", "grad_norm"), ("scale", "scale"), ("lr", "lr"))


def steps(report: Report, ink: Ink) -> list[RenderableType]:
    """Curves when there are enough steps to make one, then a table of the last steps."""
    records = report.steps
    if not records or ink.quiet:
        return []
    parts: list[RenderableType] = [ink.title("Steps", _extent(records))]
    if len(records) > LAST_ROWS:
        parts.append(_curves(records, ink))
        parts.append(Text(""))
    parts.append(_table(records[-LAST_ROWS:], ink))
    return parts


def _extent(records: tuple[StepRecord, ...]) -> str:
    logged = sum(record.source == "history" for record in records)
    skipped = sum(bool(record.skipped) for record in records)
    parts = [f"{records[0].step} to {records[-1].step}" if len(records) > 1 else ""]
    if logged:
        parts.append(f"{logged} from the run's log, {len(records) - logged} replayed")
    if skipped:
        parts.append(f"{skipped} skipped by the scaler")
    return "; ".join(part for part in parts if part)


def _curves(records: tuple[StepRecord, ...], ink: Ink) -> Table:
    room = max(10, min(ink.width - 36, 60))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", overflow="fold")
    for label, field in _CURVES:
        values = [getattr(record, field) for record in records]
        present = [value for value in values if value is not None]
        if len(present) > 1 and len(set(present)) > 1:
            table.add_row(ink(label, "dim"), ink(number(present[0])), ink(sparkline(values, room), "cyan"), ink(number(present[-1])))
    return table


def _table(records: tuple[StepRecord, ...], ink: Ink) -> Table:
    mixed = len({record.source for record in records}) > 1
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(justify="right", overflow="fold")
    shown = [(label, field) for label, field in _CURVES if any(getattr(record, field) is not None for record in records)]
    for _ in shown:
        table.add_column(justify="right", overflow="fold")
    table.add_column(overflow="fold")
    table.add_row(ink("step", "dim"), *(ink(label, "dim") for label, _ in shown), "")
    for record in records:
        values = [getattr(record, field) for _, field in shown]
        remarks = [text for text in ("skipped" if record.skipped else "", record.source if mixed else "") if text]
        table.add_row(
            ink(str(record.step)),
            *(ink(number(v), "bold red" if number(v) in ("nan", "inf", "-inf") else "") for v in values),
            ink(", ".join(remarks), "dim"),
        )
    return table
