"""Any console log with `loss=4.1` or `loss: 4.1`: Lightning's progress bar, nanoGPT, and home-made loops."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.history.columns import merged, number
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of

_NUMBER = r"\s{0,3}[=:]?\s{0,3}([-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf(?:inity)?))(?![\w./])"
_LOSS = re.compile(r"\b(?:train(?:ing)?[_/ ])?(?:lm[_ ])?loss(?:_step|/train)?" + _NUMBER, re.IGNORECASE)
_NORM = re.compile(r"\b(?:grad(?:ient)?[_\- ]?norm|gnorm)" + _NUMBER, re.IGNORECASE)
_SCALE = re.compile(r"\b(?:loss|grad|amp)[_\- ]?scale" + _NUMBER, re.IGNORECASE)
_RATE = re.compile(r"\b(?:lr|learning[_ ]rate)" + _NUMBER, re.IGNORECASE)
_STEP = re.compile(r"\b(?:global[_ ])?(?:step|iter(?:ation)?|update)s?\s{0,3}[=:#]?\s{0,3}\[?(\d{1,15})\b", re.IGNORECASE)
_BAR = re.compile(r"\b(\d{1,12})/\d{1,12} \[")
_OTHER = re.compile(r"\b(?:val(?:id(?:ation)?)?|eval|test)[_/ ]?(?:loss|set|step)?", re.IGNORECASE)
_WORTH = re.compile(r"loss|norm|scale", re.IGNORECASE)


def recognise(path: Path, head: bytes) -> int:
    """Lines with a loss and a number; several of them unless the file is called a log."""
    text = head_text(head)
    hits = sum(pairs_of(line, 0) is not None for line in text.splitlines()[:2000])
    return 25 if hits >= 3 or (hits and path.suffix in (".log", ".out", ".txt")) else 0


def read(path: Path) -> Log:
    """One row per line that has a loss, gradient norm or scale; lines without a step are numbered."""
    rows: list[StepRecord] = []
    numbered = False
    for line in lines_of(path):
        row = pairs_of(line, None)
        if row is None:
            row = pairs_of(line, rows[-1].step + 1 if rows else 0)
            numbered = numbered or row is not None
        if row is not None:
            rows.append(row)
    notes = ("the log does not name its steps: rows are numbered",) if numbered else ()
    return Log(rows=merged(rows), notes=notes)


def pairs_of(line: str, step: int | None) -> StepRecord | None:
    """The row of one line; None when it has no step (and none is given), no value, or belongs to an evaluation."""
    if not _WORTH.search(line):
        return None
    scale, norm, rate = (_value(pattern, line) for pattern in (_SCALE, _NORM, _RATE))
    loss = _value(_LOSS, line)
    other = _OTHER.search(line)
    if other and (loss is None or other.start() < (_LOSS.search(line) or other).start()):
        return None
    if loss is None and norm is None and scale is None:
        return None
    named = _STEP.search(line) or _BAR.search(line)
    at = int(named[1]) if named else step
    return None if at is None else StepRecord(step=at, loss=loss, grad_norm=norm, scale=scale, lr=rate, source="history")


def _value(pattern: re.Pattern[str], line: str) -> float | None:
    match = pattern.search(line)
    return number(match[1].replace("_", "")) if match else None


LOG = LogFormat(name="key-value-text", title="text log with loss=... lines", recognise=recognise, read=read)
