"""`trainer_state.json` of the Hugging Face Trainer: `log_history`, a list of dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpdoctor.core.report import StepRecord
from mpdoctor.replay.checkpoints.checkpoint import ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, read_json_object
from mpdoctor.replay.history.columns import number, step_number
from mpdoctor.replay.history.history import Log, LogFormat


def recognise(path: Path, head: bytes) -> int:
    """A JSON object with a `log_history`."""
    if head.lstrip()[:1] != b"{":
        return 0
    if b'"log_history"' in head:
        return 90
    return 60 if path.name == "trainer_state.json" else 0


def read(path: Path) -> Log:
    """Its training rows. The Trainer filters non-finite losses from its log unless told otherwise."""
    state = read_json_object(path)
    if not isinstance(state.get("log_history"), list):
        raise Refused(ProblemKind.MALFORMED, path, "no log_history in it")
    return Log(rows=rows_of(state["log_history"]), nan_filtered=True)


def rows_of(log_history: Any) -> tuple[StepRecord, ...]:
    """The training rows of a `log_history`; rows of evaluations and the summary at the end are left out."""
    if not isinstance(log_history, list):
        return ()
    rows: list[StepRecord] = []
    for entry in log_history:
        if not isinstance(entry, Mapping):
            continue
        step, loss, norm = step_number(entry.get("step")), number(entry.get("loss")), number(entry.get("grad_norm"))
        if step is not None and (loss is not None or norm is not None):
            rows.append(StepRecord(step=step, loss=loss, grad_norm=norm, lr=number(entry.get("learning_rate")), source="history"))
    return tuple(rows)


LOG = LogFormat(name="hf-trainer-state", title="Hugging Face trainer_state.json", recognise=recognise, read=read)
