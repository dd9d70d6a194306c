"""The folder that Lightning logs a run to: `checkpoints/` beside `metrics.csv` or TensorBoard events and `hparams.yaml`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, inside, names_in
from mpdoctor.replay.checkpoints.format import Format, Seen, read_checkpoint

_STEP = re.compile(r"step=(\d{1,12})")


def recognise(seen: Seen) -> int:
    """A folder of checkpoints beside Lightning's own files."""
    return 50 if "checkpoints" in seen.names and any(n in seen.names for n in ("hparams.yaml", "metrics.csv")) else 0


def read(path: Path) -> Checkpoint:
    """The newest `.ckpt` of the run (by the step in its name, `last.ckpt` last). Raises Refused when there is none."""
    folder = inside(path, "checkpoints")
    files = sorted((name for name in names_in(folder) if name.endswith(".ckpt")), key=_age)
    if not files:
        raise Refused(ProblemKind.MISSING, folder, "the run's folder holds no .ckpt file")
    newest = inside(folder, files[-1])
    return replace(read_checkpoint(newest), path=newest)


def _age(name: str) -> tuple[int, int, str]:
    match = _STEP.search(name)
    return (int(name.startswith("last")), int(match[1]) if match else -1, name)


FORMAT = Format(name="lightning-run", title="Lightning log folder", folder=True, recognise=recognise, read=read)
