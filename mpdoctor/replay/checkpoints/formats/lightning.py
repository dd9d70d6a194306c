"""A Lightning `.ckpt`: a torch.save file with the trainer's version, loops, callbacks and hyper-parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mpdoctor.replay.checkpoints.archive import LOCAL_HEADER
from mpdoctor.replay.checkpoints.checkpoint import Checkpoint
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.formats import torch_zip


def recognise(seen: Seen) -> int:
    """Lightning's version key, which it writes among the first."""
    return 85 if seen.head[:4] == LOCAL_HEADER and b"pytorch-lightning_version" in seen.head else 0


def read(path: Path) -> Checkpoint:
    """As a torch.save file; the precision plugin's state is the scaler, `hyper_parameters` are the settings."""
    return replace(torch_zip.read(path), format="lightning")


FORMAT = Format(name="lightning", title="Lightning .ckpt", recognise=recognise, read=read)
