"""The one door to pandas: logs and tensor statistics as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpdoctor.core.errors import MissingDependency
from mpdoctor.replay.autopsy.result import AutopsyResult
from mpdoctor.replay.history import History

if TYPE_CHECKING:
    import pandas as pd


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


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependency("tables need pandas", "pip install 'mpdoctor[replay]'") from None
    return pandas
