"""Training data from a file: rows with the line that each one stands on.

jsonl, json, csv, parquet, arrow, txt, and .pt batches (by the weights-only loader).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import MissingDependency, UnreadableInput
from mpdoctor.replay.live.weights import load_torch_file

TEXTS = ("text", "content", "sentence", "sentence1", "question", "prompt", "input", "review", "body")
"""Fields that a row's text may stand in, the first that is there wins."""
_MAX_BYTES = 2 << 30
"""A data file above this size is refused: a replay needs a few batches of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One training sample. `line` counts from 1; None where the format has no lines."""

    values: dict[str, Any]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A row with its place, for messages, and the folder that its paths start from."""

    values: dict[str, Any]
    place: str
    folder: Path

    def first(self, *names: str) -> Any:
        """The value of the first of these fields that is there and not null."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def text(self) -> str:
        """The row's text. Raises UnreadableInput for a row without one."""
        found = next((self.values[name] for name in TEXTS if isinstance(self.values.get(name), str)), None)
        if found is None:
            raise self.refused(f"neither input_ids nor a text ({', '.join(TEXTS[:4])}) in this row")
        return str(found)

    def array(self, name: str) -> torch.Tensor:
        """A field as a tensor, NaN where a number is missing. Raises UnreadableInput for anything but a regular array of numbers."""
        try:
            tensor = torch.tensor(with_nan(self.values[name]))
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise self.refused(f"the field {name} is no regular array of numbers: {str(error).splitlines()[0]}") from None
        return tensor.float() if tensor.is_floating_point() else tensor

    def file(self, name: str) -> Path:
        """A file that the row names, beside the data file. Raises UnreadableInput where it is not there."""
        path = self.folder / name
        if not path.is_file():
            raise self.refused(f"names {name}, which is not there", f"Paths start from {self.folder}.")
        return path

    def refused(self, why: str, hint: str | None = None) -> UnreadableInput:
        """The message that this row cannot be used."""
        fields = ", ".join(f"{name} (empty)" if value is None else name for name, value in self.values.items())
        return UnreadableInput(f"{self.place}: {why}", hint or f"The row's fields are {fields or 'none'}.")


def with_nan(value: Any) -> Any:
    """A nested list with NaN where a number is missing (JSON's null)."""
    if isinstance(value, list):
        return [with_nan(v) for v in value]
    return math.nan if value is None else value


@dataclass(frozen=True, slots=True)
class Data:
    """A data file: rows to be batched, or batches that are ready (`.pt`)."""

    path: Path
    rows: tuple[Row, ...] = ()
    batches: tuple[Any, ...] = ()

    def place(self, row: int) -> str:
        """`file:line` of a row, or `file, row n`."""
        line = self.rows[row].line if row < len(self.rows) else None
        return f"{self.path.name}:{line}" if line is not None else f"{self.path.name}, row {row}"

    def sample(self, row: int) -> Sample:
        """A row with its place."""
        return Sample(self.rows[row].values, self.place(row), self.path.parent)


def read_data(path: Path) -> Data:
    """Read a data file; the format goes by the name's ending.

    Raises UnreadableInput naming file and line for what cannot be read.
    """
    readers: dict[str, Callable[[Path], Data]] = {
        ".jsonl": _jsonl,
        ".ndjson": _jsonl,
        ".json": _json,
        ".csv": _csv,
        ".tsv": _csv,
        ".parquet": _parquet,
        ".arrow": _arrow,
        ".txt": _txt,
        ".pt": _pt,
        ".pth": _pt,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnreadableInput(f"{path}: unknown kind of data file", f"Known endings: {', '.join(readers)}.")
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UnreadableInput(f"{path}: is larger than 2 GiB", "Give the part of it that the failing steps read.")
        data = reader(path)
    except FileNotFoundError:
        raise UnreadableInput(f"{path}: no such file", "Give the run's training data, or a part of it.") from None
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"{path}: is not UTF-8 text (byte {error.start})", "Save it as UTF-8.") from None
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror or error}", None) from None
    if not data.rows and not data.batches:
        raise UnreadableInput(f"{path}: holds no row", "Give at least one batch of training data.")
    return data


def _jsonl(path: Path) -> Data:
    rows = []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise UnreadableInput(f"{path}:{number}: not JSON: {error}", "Each line of a .jsonl file is one JSON object.") from None
            rows.append(_row(value, path, number))
    return Data(path, tuple(rows))


def _json(path: Path) -> Data:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise UnreadableInput(
            f"{path}:{error.lineno}: not JSON: {error.msg}", "Give a list of objects, or an object with a list under `data`."
        ) from None
    except RecursionError:
        raise UnreadableInput(f"{path}: nested too deeply", None) from None
    if isinstance(value, dict):
        value = _columns(value) or next((v for v in value.values() if isinstance(v, list)), [value])
    if not isinstance(value, list):
        raise UnreadableInput(f"{path}: holds {type(value).__name__}, not a list of objects", None)
    return Data(path, tuple(_row(v, path, None) for v in value))


def _columns(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of an object whose values are columns (`{"text": [...], "label": [...]}`), or None."""
    columns = list(value.values())
    told = len(columns) > 1 and all(isinstance(c, list) and len(c) == len(columns[0]) for c in columns)
    if not told or all(isinstance(cell, dict) for c in columns for cell in c[:1]):
        return None
    return [dict(zip(value, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _row(value: Any, path: Path, line: int | None) -> Row:
    if isinstance(value, str):
        return Row({"text": value}, line)
    if not isinstance(value, dict):
        place = f"{path}:{line}" if line else str(path)
        raise UnreadableInput(f"{place}: a row must be an object or a text, not {type(value).__name__}", None)
    return Row(_named(value), line)


def _named(row: dict[Any, Any]) -> dict[str, Any]:
    """Fields by names as models and collators have them: without spaces around, in small letters."""
    return {str(name).strip().lower(): cell for name, cell in row.items()}


def _csv(path: Path) -> Data:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            delimiter = _delimiter(file.readline())
            file.seek(0)
            reader = csv.DictReader(file, delimiter=delimiter)
            return Data(path, tuple(Row(_named({k: _number(v) for k, v in r.items() if k is not None}), reader.line_num) for r in reader))
        except csv.Error as error:
            raise UnreadableInput(f"{path}: not CSV: {error}", None) from None


def _delimiter(header: str) -> str:
    """What separates the names in a header: the commonest of comma, tab, semicolon and bar; a comma where there is none."""
    return max(",\t;|", key=header.count)


def _number(text: Any) -> Any:
    """A cell as a number where it is one."""
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parquet(path: Path) -> Data:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingDependency(f"{path}: reading parquet needs pyarrow, which is not installed", "pip install pyarrow") from None
    try:
        table = parquet.read_table(path)
    except (ValueError, OSError) as error:
        raise UnreadableInput(f"{path}: not a parquet file: {str(error).splitlines()[0]}", None) from None
    return Data(path, tuple(Row(_named(row)) for row in table.to_pylist()))


def _arrow(path: Path) -> Data:
    """A file of Hugging Face datasets: an Arrow stream, or an Arrow file."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependency(f"{path}: reading Arrow files needs pyarrow, which is not installed", "pip install pyarrow") from None
    for opened in (pyarrow.ipc.open_stream, pyarrow.ipc.open_file):
        try:
            with pyarrow.memory_map(str(path)) as source:
                return Data(path, tuple(Row(_named(row)) for row in opened(source).read_all().to_pylist()))
        except pyarrow.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
    raise UnreadableInput(f"{path}: not an Arrow file: {reason}", None)


def _txt(path: Path) -> Data:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return Data(path, tuple(Row({"text": line}, i) for i, line in enumerate(lines, 1)))


def _pt(path: Path) -> Data:
    value = load_torch_file(path)
    return Data(path, (), tuple(value) if isinstance(value, list) else (value,))
