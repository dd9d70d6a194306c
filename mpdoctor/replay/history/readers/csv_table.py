"""A table in CSV: Lightning's `metrics.csv`, W&B's exports, and any other with a step and a loss."""

from __future__ import annotations

import csv
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused
from mpdoctor.replay.history.columns import clean, fields_of, merged, row_of
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of


def recognise(path: Path, head: bytes) -> int:
    """A header line that names a loss, a gradient norm or a loss scale, and a suffix or enough commas."""
    first = head_text(head).lstrip("\ufeff").partition("\n")[0]
    names = _names(first)
    if len(names) < 2 or not {"loss", "grad_norm", "scale"} & set(fields_of(names)):
        return 0
    return 80 if path.suffix.lower() in (".csv", ".tsv") else 30


def read(path: Path) -> Log:
    """One row per step; rows without a step are numbered by their lines."""
    lines = lines_of(path)
    first = next(lines, "").lstrip("\ufeff")
    names, delimiter = _names(first), _delimiter(first)
    usable = [name for name in names if not clean(name).endswith(("__min", "__max"))]
    fields = fields_of(usable)
    if not {"loss", "grad_norm", "scale"} & set(fields):
        raise Refused(ProblemKind.MALFORMED, path, "a table without a loss, a gradient norm or a loss scale")
    rows = []
    try:
        for index, cells in enumerate(csv.reader(lines, delimiter=delimiter)):
            row = row_of(dict(zip(names, cells, strict=False)), fields, None if "step" in fields else index)
            if row is not None:
                rows.append(row)
    except csv.Error as error:
        raise Refused(ProblemKind.MALFORMED, path, f"not a table: {error}") from None
    notes = () if "step" in fields else ("the table has no step column: rows are numbered",)
    return Log(rows=merged(rows), notes=notes)


def _names(header: str) -> list[str]:
    try:
        return next(csv.reader([header.rstrip("\r\n")], delimiter=_delimiter(header)), [])
    except csv.Error:
        return []


def _delimiter(header: str) -> str:
    return "\t" if header.count("\t") > header.count(",") else ";" if header.count(";") > header.count(",") else ","


LOG = LogFormat(name="csv", title="CSV table (Lightning metrics.csv, W&B export)", recognise=recognise, read=read)
