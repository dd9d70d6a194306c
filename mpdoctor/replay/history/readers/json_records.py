"""Records in JSON: one object per line (W&B history, metrics.jsonl), a list of objects, or columns by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, read_json
from mpdoctor.replay.history.columns import fields_of, merged, row_of
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of

_FIELDS = {"loss", "grad_norm", "scale"}


def recognise(path: Path, head: bytes) -> int:
    """A JSON object or list that names a loss; trainer_state.json has a reader of its own."""
    text = head_text(head).lstrip()
    if text[:1] not in ("{", "[") or not any(word in text for word in ('loss"', 'norm"', 'scale"')):
        return 0
    first = _object(text.partition("\n")[0])
    if first is not None:
        return 70 if _FIELDS & set(fields_of(first)) or path.suffix == ".jsonl" else 20
    return 40 if path.suffix == ".json" else 10


def read(path: Path) -> Log:
    """One row per step; records without a step are numbered."""
    first = next((line for line in lines_of(path) if line.strip()), "")
    records = _lines(path) if _object(first) is not None else _document(read_json(path))
    rows = [row for index, record in enumerate(records) if (row := row_of(record, fields_of(record), index)) is not None]
    if all(row.loss is None and row.grad_norm is None and row.scale is None for row in rows):
        raise Refused(ProblemKind.MALFORMED, path, "no record in it has a loss, a gradient norm or a loss scale")
    return Log(rows=merged(rows))


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in lines_of(path):
        record = _object(line)
        if record is not None:
            yield record


def _object(line: str) -> Mapping[str, Any] | None:
    """The record of one line; None for anything else, a document of columns in one line among it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or any(isinstance(value[name], dict | list) for name in fields_of(value).values()):
        return None
    return value


def _document(value: Any) -> Iterable[Mapping[str, Any]]:
    """Records of a whole document: a list of objects, or columns (`{"loss": {"0": 4.1, ...}, ...}`, `{"loss": [4.1, ...]}`)."""
    if isinstance(value, list):
        return [record for record in value if isinstance(record, dict)]
    if not isinstance(value, dict):
        return []
    columns = {name: list(cells.values()) if isinstance(cells, dict) else cells for name, cells in value.items() if isinstance(cells, dict | list)}
    count = max((len(cells) for cells in columns.values()), default=0)
    return [{name: cells[i] for name, cells in columns.items() if i < len(cells)} for i in range(count)]


LOG = LogFormat(name="json-records", title="JSON records (W&B history, metrics.jsonl)", recognise=recognise, read=read)
