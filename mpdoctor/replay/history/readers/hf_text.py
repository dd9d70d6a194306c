"""The Hugging Face Trainer's console log: dictionaries of a loss between progress bars."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.history.columns import fields_of, row_of
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of

_DICTIONARY = re.compile(r"\{'(?:loss|grad_norm)': [^{}]{1,2000}\}")
_PAIR = re.compile(r"'([a-z_/]{1,60})': '?([^,'}\s]{1,40})")
_BAR = re.compile(r"(\d{1,12})/(\d{1,12}) \[")


def recognise(path: Path, head: bytes) -> int:
    """A dictionary with a loss, as Python prints it."""
    return 70 if _DICTIONARY.search(head_text(head)) else 0


def read(path: Path) -> Log:
    """One row per dictionary, at the step that the progress bar before it shows; without bars rows are numbered."""
    rows: list[StepRecord] = []
    bar: int | None = None
    counted = False
    for line in lines_of(path):
        for match in _BAR.finditer(line):
            bar = int(match[1])
        found = _DICTIONARY.search(line)
        if found is None:
            continue
        values = dict(_PAIR.findall(found[0]))
        last = rows[-1].step if rows else 0
        counted = counted or bar is None or bar <= last
        row = row_of(values, fields_of(values), last + 1 if bar is None or bar <= last else bar)
        if row is not None:
            rows.append(row)
    notes = ("the log does not name its steps: rows are numbered",) if counted else ()
    return Log(rows=tuple(rows), nan_filtered=True, notes=notes)


LOG = LogFormat(name="hf-text", title="Hugging Face Trainer console log", recognise=recognise, read=read)
