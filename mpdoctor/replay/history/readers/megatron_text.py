"""Megatron-LM's console log: `iteration 100/ 5000 | ... | lm loss: 7.1E+00 | loss scale: 65536.0 | grad norm: 1.2 | ...`."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.history.columns import number
from mpdoctor.replay.history.history import Log, LogFormat
from mpdoctor.replay.history.lines import head_text, lines_of

_LINE = re.compile(r"iteration\s+(\d+)/\s*\d+ \|")
_PAIR = re.compile(r"\| *([a-z][a-z ()\-]{1,60}): *([^|\s]{1,40})", re.IGNORECASE)


def recognise(path: Path, head: bytes) -> int:
    """A line of its kind."""
    return 85 if _LINE.search(head_text(head)) else 0


def read(path: Path) -> Log:
    """One row per line. Megatron counts its skipped iterations between two lines."""
    rows = []
    for line in lines_of(path):
        match = _LINE.search(line)
        if match is None:
            continue
        pairs = {name.strip().lower(): value for name, value in _PAIR.findall(line)}
        skipped, nan = number(pairs.get("number of skipped iterations")), number(pairs.get("number of nan iterations"))
        loss = next((number(pairs[name]) for name in ("lm loss", "loss", "total loss") if name in pairs), None)
        rows.append(
            StepRecord(
                step=int(match[1]),
                loss=float("nan") if nan and loss in (None, 0.0) else loss,
                grad_norm=number(pairs.get("grad norm")),
                scale=number(pairs.get("loss scale")),
                lr=number(pairs.get("learning rate")),
                skipped=None if skipped is None else skipped > 0,
                source="history",
            )
        )
    scaled = any(row.scale is not None and row.scale != 1 for row in rows)
    return Log(rows=tuple(r if scaled else _without_scale(r) for r in rows), nan_filtered=False, fp16=scaled)


def _without_scale(row: StepRecord) -> StepRecord:
    """Megatron logs a scale of 1.0 in bf16 runs, which have no scaler."""
    return StepRecord(step=row.step, loss=row.loss, grad_norm=row.grad_norm, lr=row.lr, skipped=row.skipped, source="history")


LOG = LogFormat(name="megatron-text", title="Megatron-LM log", recognise=recognise, read=read)
