"""A folder of many checkpoints of one run (`checkpoint-100` to `checkpoint-900`): the newest is read, the others are listed.

The autopsy runs over the whole series (`mpdoctor.replay.autopsy.series`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint
from mpdoctor.replay.checkpoints.files import Refused
from mpdoctor.replay.checkpoints.format import Format, Seen, read_checkpoint
from mpdoctor.replay.checkpoints.series import members_of, step_of


def recognise(seen: Seen) -> int:
    """Names that count steps, in a folder that is no checkpoint itself."""
    return 35 if sum(step_of(name) is not None for name in seen.names) >= 1 else 0


def read(path: Path) -> Checkpoint:
    """The newest checkpoint that can be read; `extra["series"]` lists all, oldest first. Raises Refused when none can."""
    members = members_of(path)
    refusal: Refused | None = None
    for member in reversed(members):
        try:
            found = read_checkpoint(member.path)
        except Refused as refused:
            refusal = refusal or refused
            continue
        problems = (*found.problems, *((refusal.problem,) if refusal else ()))
        series = [{"name": m.path.name, "step": m.step} for m in members]
        return replace(found, path=member.path, extra={**found.extra, "series": series}, problems=problems)
    assert refusal is not None
    raise refusal


FORMAT = Format(name="series", title="folder of checkpoints", folder=True, recognise=recognise, read=read)
