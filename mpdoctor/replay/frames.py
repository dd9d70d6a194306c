"""The one door to pandas: logs, tensor statistics, replays and trace files as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpdoctor.core.errors import MissingDependency, UnreadableInput
from mpdoctor.core.report import ExperimentResult, StepRecord, TimelineEntry
from mpdoctor.core.trace import ModuleAmax, TensorStats
from mpdoctor.replay.autopsy.result import AutopsyResult
from mpdoctor.replay.history import History

if TYPE_CHECKING:
    import pandas as pd

    from mpdoctor.replay.report import ReplayReport

KINDS = ("steps", "events", "tensors", "modules", "experiments")
"""The tables of a report."""


def report_frame(report: ReplayReport, kind: str) -> pd.DataFrame:
    """A report as a table. Each has its columns even without a row.

    `steps`: one row per step, of the log and of the replay. `events`: the failing step's timeline, in execution order. `tensors`: one row
    per parameter of the traced step. `modules`: largest magnitude by module, phase and dtype of the traced step. `experiments`: one row each.

    Raises ValueError for another kind, MissingDependency without pandas.
    """
    trace = report.recording.trace if report.recording is not None else None
    match kind:
        case "steps":
            return steps_frame(report.steps)
        case "events":
            return events_frame(report.timeline)
        case "tensors":
            return tensors_frame(trace.tensors if trace is not None else ())
        case "modules":
            return modules_frame(trace.modules if trace is not None else ())
        case "experiments":
            return experiments_frame(report.experiments)
    raise ValueError(f"no table {kind!r}; there are {', '.join(KINDS)}")


def steps_frame(steps: Iterable[StepRecord]) -> pd.DataFrame:
    """One row per step: loss, grad_norm, scale, lr (float64), skipped (nullable boolean), source (`history` or `replay`)."""
    pandas = _pandas()
    rows = list(steps)
    columns: dict[str, Any] = {"step": pandas.array([r.step for r in rows], dtype="int64"), "source": [r.source for r in rows]}
    for name in ("loss", "grad_norm", "scale", "lr"):
        columns[name] = pandas.Series([getattr(r, name) for r in rows], dtype="float64")
    columns["skipped"] = pandas.array([r.skipped for r in rows], dtype="boolean")
    frame: pd.DataFrame = pandas.DataFrame(columns)
    return frame


def events_frame(timeline: Iterable[TimelineEntry]) -> pd.DataFrame:
    """One row per place of the timeline: step, phase, module, op, tensor, location, note, marker, dtype, amax."""
    columns = ["step", "phase", "module", "op", "tensor", "location", "note", "marker", "dtype", "amax"]
    rows = [
        (e.site.step, e.site.phase.value, e.site.module, e.site.op, e.site.tensor, str(e.site.source or ""), e.note, e.marker, e.dtype, e.amax)
        for e in timeline
    ]
    frame: pd.DataFrame = _pandas().DataFrame(rows, columns=columns)
    return frame


def tensors_frame(tensors: Iterable[TensorStats]) -> pd.DataFrame:
    """One row per parameter: dtype, amax, and what its gradient and its update were; shares are of its elements."""
    names = [
        "name",
        "dtype",
        "numel",
        "amax",
        "grad_dtype",
        "grad_norm",
        "grad_amax",
        "grad_zero_share",
        "update_amax",
        "changed_share",
        "moment_zero_share",
        "has_master",
    ]
    frame: pd.DataFrame = _pandas().DataFrame([[getattr(t, n) for n in names] for t in tensors], columns=names)
    return frame


def modules_frame(modules: Iterable[ModuleAmax]) -> pd.DataFrame:
    """One row per module, phase and dtype: largest magnitude, and how many results were not finite."""
    names = ["module", "phase", "dtype", "amax", "nonfinite"]
    frame: pd.DataFrame = _pandas().DataFrame([[getattr(m, n) for n in names] for m in modules], columns=names)
    return frame


def experiments_frame(experiments: Iterable[ExperimentResult]) -> pd.DataFrame:
    """One row per experiment that ran: id, slug, what it changes, outcome, detail, causes, seconds."""
    names = ["id", "slug", "changes", "outcome", "detail", "causes", "seconds"]
    rows = [(e.id, e.slug, e.changes, e.outcome.value, e.detail, ", ".join(e.causes), e.seconds) for e in experiments]
    frame: pd.DataFrame = _pandas().DataFrame(rows, columns=names)
    return frame


def history_frame(history: History) -> pd.DataFrame:
    """One row per logged step: step (index), loss, grad_norm, scale, lr (float64, NaN where not logged), skipped (nullable boolean)."""
    pandas = _pandas()
    rows = history.rows
    columns = {name: [getattr(row, name) for row in rows] for name in ("loss", "grad_norm", "scale", "lr")}
    frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.Index([row.step for row in rows], name="step", dtype="int64"), dtype="float64")
    frame["skipped"] = pandas.array([row.skipped for row in rows], dtype="boolean")
    return frame


def tensor_frame(result: AutopsyResult) -> pd.DataFrame:
    """One row per judged tensor: name (index), role, dtype, shape, counts as shares, largest magnitude, first non-finite index."""
    pandas = _pandas()
    records = [
        {
            "name": t.name,
            "role": t.entry.role.value,
            "dtype": t.entry.dtype,
            "shape": str(list(t.entry.shape)),
            "numel": t.numel,
            "nans": t.nans,
            "infs": t.infs,
            "first_nonfinite": None if t.first_nonfinite is None else str(list(t.first_nonfinite)),
            "amax": t.amax,
            "above_fp16": t.above_fp16,
            "zeros": t.share(t.zeros),
            "subnormals": t.share(t.subnormals),
            "zero_in_fp16": t.share(t.zero_in_fp16),
            "unmoved": None if t.unmoved is None else t.share(t.unmoved),
            "exact": t.exact,
            "file": t.entry.file.name,
        }
        for t in result.tensors
    ]
    frame: pd.DataFrame = pandas.DataFrame.from_records(records, index="name" if records else None)
    return frame


def check_parquet() -> None:
    """Raise MissingDependency where parquet cannot be written or read."""
    _pandas()
    if find_spec("pyarrow") is None:
        raise MissingDependency("parquet needs pyarrow, which is not installed", "pip install pyarrow, or write the trace as .jsonl")


def write_parquet(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write records as a parquet file."""
    check_parquet()
    _pandas().DataFrame(rows).to_parquet(path, index=False)


def read_parquet_column(path: Path, column: str) -> list[str]:
    """The texts of one column. Raises UnreadableInput for a file that is no parquet, or has no such column of texts."""
    check_parquet()
    import pyarrow

    try:
        values: list[str] = _pandas().read_parquet(path, columns=[column])[column].tolist()
    except (pyarrow.ArrowException, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableInput(
            f"{path}: not a parquet file with a column {column!r}: {reason}", "Record the run again, or give a .jsonl trace."
        ) from None
    if not all(isinstance(value, str) for value in values):
        raise UnreadableInput(f"{path}: the column {column!r} holds something else than texts", "Record the run again, or give a .jsonl trace.")
    return values


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependency("tables need pandas", "pip install 'mpdoctor[replay]'") from None
    return pandas
