"""A folder of accelerate's `save_state`: model, optimizers, schedulers, scaler, samplers, random states."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint
from mpdoctor.replay.checkpoints.files import names_in
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder
from mpdoctor.replay.checkpoints.weights import add_weights

_RANDOM = re.compile(r"^random_states_\d+\.pkl$")
_PARTS = re.compile(
    r"^(model_\d+\.safetensors|pytorch_model_\d+\.bin|pytorch_model_fsdp_\d+|pytorch_model(_\d+)?|optimizer(_\d+)?(\.bin)?"
    r"|scheduler(_\d+)?\.bin|scaler\.pt|custom_checkpoint_\d+\.pkl)$"
)
"""Files and folders that hold state; a folder `pytorch_model` is DeepSpeed's, `..._fsdp_0` is torch's distributed format."""


def recognise(seen: Seen) -> int:
    """Random states under accelerate's name."""
    return 70 if any(_RANDOM.match(name) for name in seen.names) else 0


def read(path: Path) -> Checkpoint:
    """Read every part that is there."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    folder.config = folder.json("config.json") or {}
    add_weights(folder)
    for name in sorted(name for name in folder.names if _PARTS.match(name)):
        folder.part(name)
    folder.rng = True
    folder.extra.pop("step", None)
    match = re.search(r"(?:checkpoint|step)[-_](\d+)$", path.name)
    folder.step = int(match[1]) if match else folder.step
    return folder.checkpoint("accelerate")


FORMAT = Format(name="accelerate", title="accelerate save_state folder", folder=True, recognise=recognise, read=read)
