"""A recording on disk, written by `replay --trace FILE` and judged by `mpdoctor replay --trace FILE`. No torch.

JSON lines, strict JSON: the run, then each step, each traced step, and each experiment, one object per line. Parquet holds the same
objects in the column `record`, with the numbers of the steps in columns of their own.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpdoctor.core.errors import UnreadableInput, UsageError
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.report import ExperimentResult
from mpdoctor.core.trace import Recording, StepObservation, StepTrace
from mpdoctor.core.unjson import Mismatch, from_jsonable
from mpdoctor.replay.diagnosis import Diagnosis, Surroundings

SCHEMA = "mpdoctor.trace/1"
MAX_BYTES = 1 << 30
"""A larger file is refused: a recording of thousands of steps has a few MiB."""
PARQUET = ".parquet"
_STEP_COLUMNS = ("loss", "grad_norm", "scale", "lr", "weight_norm", "skipped")
_WAY_OUT = "Record the run again: mpdoctor replay ... --trace FILE.jsonl"


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedReplay:
    """What a trace file holds."""

    recording: Recording
    surroundings: Surroundings
    experiments: tuple[ExperimentResult, ...]


def check_writable(path: Path) -> None:
    """Tell now, not after an hour of replay, that a trace cannot be written. Raises UsageError, MissingDependency for parquet without pandas."""
    folder = path.absolute().parent
    if path.is_dir():
        raise UsageError(f"{path}: cannot write the trace: it is a folder", "Name a file, with the ending .jsonl or .parquet.")
    if not folder.is_dir():
        raise UsageError(f"{path}: cannot write the trace: there is no folder {folder}", f"Create it first: mkdir -p {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"{path}: cannot write the trace: permission denied", "Give a path in a folder that you may write to.")
    if path.suffix.lower() == PARQUET:
        from mpdoctor.replay.frames import check_parquet

        check_parquet()


def write_trace(diagnosis: Diagnosis, path: Path) -> None:
    """Write what a replay recorded; parquet where the name ends so, else JSON lines.

    Raises UsageError when the file cannot be written.
    """
    records = list(_records(diagnosis))
    lines = [to_json(record, indent=None) for record in records]
    try:
        if path.suffix.lower() == PARQUET:
            from mpdoctor.replay.frames import write_parquet

            write_parquet([_row(record, line) for record, line in zip(records, lines, strict=True)], path)
        else:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot write the trace: {error.strerror or error}", "Give a path in a folder that you may write to.") from None


def _records(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    recording = diagnosis.recording
    run = {f.name: getattr(recording, f.name) for f in dataclasses.fields(recording) if f.name not in ("steps", "traces")}
    yield {"schema": SCHEMA, "kind": "run", **run, "surroundings": diagnosis.surroundings}
    for kind, items in (("step", recording.steps), ("trace", recording.traces.values()), ("experiment", diagnosis.experiments)):
        for item in items:
            yield {"kind": kind, **{f.name: getattr(item, f.name) for f in dataclasses.fields(item)}}


def _row(record: dict[str, Any], line: str) -> dict[str, Any]:
    is_step = record["kind"] == "step"
    return {
        "kind": record["kind"],
        "step": record.get("step"),
        **{name: record[name] if is_step else None for name in _STEP_COLUMNS},
        "record": line,
    }


def read_trace(path: Path) -> RecordedReplay:
    """Read a trace file. Raises UnreadableInput naming file and line for whatever is not one."""
    run: dict[str, Any] | None = None
    steps: list[StepObservation] = []
    traces: dict[int, StepTrace] = {}
    experiments: list[ExperimentResult] = []
    for number, line in _lines(path):
        record = _object(line, path, number)
        if run is None:
            if record.get("schema") != SCHEMA or record.get("kind") != "run":
                raise UnreadableInput(f"{path}:{number}: not a trace of mpdoctor (the first line should have the schema {SCHEMA})", _WAY_OUT)
            run = record
            continue
        try:
            match record.get("kind"):
                case "step":
                    steps.append(from_jsonable(StepObservation, record))
                case "trace":
                    trace = from_jsonable(StepTrace, record)
                    traces[trace.step] = trace
                case "experiment":
                    experiments.append(from_jsonable(ExperimentResult, record))
                case other:
                    raise Mismatch(f"kind is {other!r}, not step, trace or experiment")
        except Mismatch as problem:
            raise UnreadableInput(f"{path}:{number}: not a line of a trace: {problem}", _WAY_OUT) from None
    if run is None:
        raise UnreadableInput(f"{path}: is empty", _WAY_OUT)
    if len({s.step for s in steps}) < len(steps):
        raise UnreadableInput(f"{path}: a step is recorded twice", _WAY_OUT)
    try:
        recording = dataclasses.replace(from_jsonable(Recording, {**run, "steps": [], "traces": {}}), steps=tuple(steps), traces=traces)
        surroundings = from_jsonable(Surroundings, run.get("surroundings", {}), "surroundings")
    except Mismatch as problem:
        raise UnreadableInput(f"{path}:1: not the run of a trace: {problem}", _WAY_OUT) from None
    return RecordedReplay(recording, surroundings, tuple(experiments))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    try:
        if path.is_dir():
            raise UnreadableInput(f"{path}: is a folder, not a trace", "A checkpoint folder goes without --trace: mpdoctor replay FOLDER")
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableInput(f"{path}: is larger than 1 GiB", _WAY_OUT)
        if path.suffix.lower() == PARQUET:
            from mpdoctor.replay.frames import read_parquet_column

            yield from enumerate(read_parquet_column(path, "record"), 1)
            return
        with path.open(encoding="utf-8-sig") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
    except FileNotFoundError:
        raise UnreadableInput(f"{path}: no such file", "To record a run, name it too: mpdoctor replay CHECKPOINT --trace FILE.jsonl") from None
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"{path}: is not UTF-8 text (byte {error.start} of a block), so it is no trace", _WAY_OUT) from None
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror or error}", None) from None


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UnreadableInput(f"{path}:{number}: not JSON: {reason}", _WAY_OUT) from None
    if not isinstance(record, dict):
        raise UnreadableInput(f"{path}:{number}: not a line of a trace: should be an object", _WAY_OUT)
    return record


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON (traces write it as text)")
