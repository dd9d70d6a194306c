"""A log as rows, and how to get one from a checkpoint or a log file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mpdoctor.core import rule
from mpdoctor.core.errors import UnreadableInput
from mpdoctor.core.report import StepRecord
from mpdoctor.replay.checkpoints import Checkpoint, settings_from
from mpdoctor.replay.checkpoints.files import Refused, names_in, open_regular, read_at, size_of
from mpdoctor.replay.history.facts import HistoryFacts, facts_of

HEAD_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a reader found in a log.

    Attributes:
        rows: one record per logged step, in the order of the log.
        nan_filtered: whether the logger replaces non-finite losses; None when that is not known.
        fp16: whether the log itself shows that the run used a loss scaler.
        notes: what the reader could not use.
    """

    rows: tuple[StepRecord, ...]
    nan_filtered: bool | None = None
    fp16: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """A kind of log.

    Attributes:
        name: stable name (`deepspeed-text`).
        title: what people call it.
        recognise: how specifically the start of a file is this kind: 0 not at all, 100 certain.
        read: the rows of a file. Raises Refused when nothing of it can be read.
    """

    name: str
    title: str
    recognise: Callable[[Path, bytes], int]
    read: Callable[[Path], Log]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A run's log. `facts` is what the rows say; `rows` are oldest first."""

    path: Path
    kind: str
    rows: tuple[StepRecord, ...]
    facts: HistoryFacts
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows)


@cache
def all_log_formats() -> tuple[LogFormat, ...]:
    """All kinds of log, sorted by name."""
    return tuple(sorted((module.LOG for module in rule.modules("mpdoctor.replay.history.readers")), key=lambda log: log.name))


def read_history(source: Checkpoint | Path) -> History:
    """The log of a checkpoint (empty when it has none), or of a log file.

    Raises UnreadableInput for a file that is no log or cannot be read.
    """
    if isinstance(source, Checkpoint):
        return _of_checkpoint(source)
    try:
        found = find_log_format(source)
        if found is None:
            titles = ", ".join(log.title for log in all_log_formats())
            raise UnreadableInput(f"{source}: not a training log that mpdoctor knows", f"mpdoctor reads: {titles}.")
        log = found.read(source)
    except Refused as refused:
        raise UnreadableInput(f"{refused.problem.file}: {refused.problem.text}") from None
    return _history(source, found.name, log, {})


def is_log(path: Path) -> bool:
    """Whether a file is a training log of a kind that mpdoctor reads."""
    try:
        return find_log_format(path) is not None
    except Refused:
        return False


def find_log_format(path: Path) -> LogFormat | None:
    """The kind of log that a file is; None when it is none. Raises Refused when the file cannot be read."""
    with open_regular(path) as file:
        head = read_at(file, path, 0, min(HEAD_BYTES, size_of(file)))
    score, best = max(((log.recognise(path, head), log) for log in all_log_formats()), key=lambda pair: pair[0], default=(0, None))
    return best if score > 0 else None


def _of_checkpoint(checkpoint: Checkpoint) -> History:
    from mpdoctor.replay.history.readers.hf_trainer_state import rows_of

    settings = settings_from(checkpoint)
    scaler = checkpoint.scaler is not None
    state = checkpoint.trainer_state or {}
    rows = rows_of(state.get("log_history"))
    if not rows and checkpoint.format == "lightning":
        beside = _log_of_lightning_run(checkpoint.path)
        if beside is not None:
            return _history(beside[0], beside[1].name, beside[2], settings, scaler=scaler)
    filtered = settings.get("logging_nan_inf_filter", True if rows else None)
    log = Log(rows=rows, nan_filtered=filtered if isinstance(filtered, bool) else None)
    return _history(checkpoint.path, "hf-trainer-state", log, settings, scaler=scaler)


def _log_of_lightning_run(checkpoint: Path) -> tuple[Path, LogFormat, Log] | None:
    """The log that Lightning keeps in the folder above `checkpoints`: metrics.csv, or the newest event file."""
    if checkpoint.parent.name != "checkpoints":
        return None
    run = checkpoint.parent.parent
    try:
        names = names_in(run)
        events = [name for name in names if name.startswith("events.out.tfevents")]
        name = "metrics.csv" if "metrics.csv" in names else events[-1] if events else None
        found = find_log_format(run / name) if name is not None else None
        return (run / name, found, found.read(run / name)) if name is not None and found is not None else None
    except Refused:
        return None


def _history(path: Path, kind: str, log: Log, settings: Mapping[str, Any], *, scaler: bool = False) -> History:
    scaled = scaler or settings.get("fp16") is True or log.fp16 is True or any(row.scale is not None for row in log.rows)
    facts, rows = facts_of(log.rows, nan_filtered=log.nan_filtered, scaled=scaled)
    return History(path=path, kind=kind, rows=rows, facts=facts, notes=log.notes, settings=settings)
