"""A NeMo folder: `weights` and `context` (NeMo 2), or an unpacked `.nemo` archive with a `model_weights` folder."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint
from mpdoctor.replay.checkpoints.files import names_in
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder, first_of


def recognise(seen: Seen) -> int:
    """NeMo's own names."""
    if {"weights", "context"} <= seen.names:
        return 70
    return 70 if {"model_weights", "model_config.yaml"} <= seen.names else 0


def read(path: Path) -> Checkpoint:
    """Read the weights, which are in torch's distributed format."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    name = first_of(("weights", "model_weights"), folder.names)
    assert name is not None
    folder.part(name)
    return folder.checkpoint("nemo")


FORMAT = Format(name="nemo-folder", title="NeMo folder", folder=True, recognise=recognise, read=read)
