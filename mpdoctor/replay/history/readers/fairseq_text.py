"""fairseq's console log: `train_inner | epoch 001: 100 / 1000 loss=12.3, ..., gnorm=3.2, loss_scale=128, ...`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.history.columns import fields_of, merged, number, row_of
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of

_OVERFLOW = re.compile(r"gradient overflow detected, ignoring gradient, setting loss scale to: ([\d.e+-]{1,20})")
_PAIR = re.compile(r"\b(loss|gnorm|loss_scale|lr|num_updates)=([^,\s|]{1,40})")
_JSON = re.compile(r"\{.*\}")


def recognise(path: Path, head: bytes) -> int:
    """Its tag for training lines, or its overflow note."""
    text = head_text(head)
    return 80 if "| train_inner |" in text or "gradient overflow detected, ignoring gradient" in text or "fairseq_cli.train" in text else 0


def read(path: Path) -> Log:
    """Rows by number of updates; an overflow note is a skipped step after the last update."""
    rows: list[StepRecord] = []
    updates = overflows = 0
    for line in lines_of(path):
        overflow = _OVERFLOW.search(line)
        if overflow is not None:
            overflows += 1
            rows.append(StepRecord(step=updates + overflows, scale=number(overflow[1]), skipped=True, source="history"))
            continue
        if "train_inner" not in line and "num_updates" not in line:
            continue
        values = dict(_PAIR.findall(line)) or _json(line)
        row = row_of(values, fields_of(values))
        if row is not None and "valid" not in line.split("|")[2:3]:
            updates, overflows = row.step, 0
            rows.append(row)
    return Log(rows=merged(rows), nan_filtered=False, fp16=any(row.scale is not None for row in rows))


def _json(line: str) -> dict[str, object]:
    match = _JSON.search(line)
    try:
        value = json.loads(match[0]) if match else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


LOG = LogFormat(name="fairseq-text", title="fairseq log", recognise=recognise, read=read)
