"""DeepSpeed's console log: `step=10, skipped=3, lr=[...]` lines, overflow messages, and losses that the script prints."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.history.columns import merged, number
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of
from mpdoctor.replay.history.readers.key_value_text import pairs_of

_STEP = re.compile(r"\bstep=(\d{1,15}), skipped=(\d{1,15})(?:, lr=\[([^\],\s]{1,40}))?")
_OVERFLOW = re.compile(r"OVERFLOW! Rank \d+ Skipping step\. Attempted loss scale: ([\d.e+]{1,20}), (?:reducing to ([\d.e+]{1,20})|but hysteresis)")
_MARKS = ("OVERFLOW! Rank", "[deepspeed]", "DeepSpeed info:", "log_dist")


def recognise(path: Path, head: bytes) -> int:
    """DeepSpeed's own messages."""
    text = head_text(head)
    return 75 if _STEP.search(text) or _OVERFLOW.search(text) or any(mark in text for mark in _MARKS) else 0


def read(path: Path) -> Log:
    """Rows by step. An overflow message belongs to the step after the last one that was named."""
    rows: list[StepRecord] = []
    step = skipped_before = 0
    overflowed = 0
    for line in lines_of(path):
        overflow, named = _OVERFLOW.search(line), _STEP.search(line)
        if overflow is not None:
            overflowed += 1
            scale = number(overflow[2] or overflow[1])
            rows.append(StepRecord(step=step + overflowed, scale=scale, skipped=True, source="history"))
        elif named is not None:
            step, count, overflowed = int(named[1]), int(named[2]), 0
            rows.append(StepRecord(step=step, lr=number(named[3]), skipped=count > skipped_before, source="history"))
            skipped_before = count
        else:
            found = pairs_of(line, step + overflowed or None)
            if found is not None:
                step = max(step, found.step)
                rows.append(found)
    return Log(rows=tuple(_told(row) for row in merged(rows)), nan_filtered=False, fp16=any(row.scale is not None for row in rows))


def _told(row: StepRecord) -> StepRecord:
    """A step that is named with nothing but its number of skips says no more than that."""
    return row if row.loss is not None or row.grad_norm is not None or row.scale is not None or row.skipped else replace(row, skipped=None)


LOG = LogFormat(name="deepspeed-text", title="DeepSpeed log", recognise=recognise, read=read)
