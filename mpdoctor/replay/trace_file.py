"""A recording on disk: JSON lines, one object per step and per traced step, strict JSON."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mpdoctor.core.errors import UsageError
from mpdoctor.core.jsonable import to_json
from mpdoctor.core.trace import Recording

SCHEMA = "mpdoctor.trace/1"


def write_trace(recording: Recording, path: Path) -> None:
    """Write a recording. The first line holds the run, then one line per step, then one per traced step.

    Raises UsageError when the file cannot be written.
    """
    run = {f.name: getattr(recording, f.name) for f in dataclasses.fields(recording) if f.name not in ("steps", "traces")}
    lines = [to_json({"schema": SCHEMA, "kind": "run", **run}, indent=None)]
    lines += [to_json({"kind": "step", **dataclasses.asdict(s)}, indent=None) for s in recording.steps]
    lines += [to_json({"kind": "trace", **dataclasses.asdict(t)}, indent=None) for t in recording.traces.values()]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot write the trace: {error.strerror}", "Give a path in a folder that you may write to.") from None
