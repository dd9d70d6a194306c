"""A checkpoint folder of the Hugging Face Trainer: weights, optimizer, scheduler, scaler, RNG, log and settings."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint
from mpdoctor.replay.checkpoints.files import names_in
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder, first_of
from mpdoctor.replay.checkpoints.weights import add_weights

_SIGNS = ("trainer_state.json", "training_args.bin")
_FOLDERS = re.compile(r"^(global_step\d+|pytorch_model_fsdp_\d+|optimizer_\d+)$")
_RNG = re.compile(r"^rng_state(_\d+)?\.pth$")


def recognise(seen: Seen) -> int:
    """The Trainer's own files."""
    return 80 if any(sign in seen.names for sign in _SIGNS) else 0


def read(path: Path) -> Checkpoint:
    """Read every part that is there; parts that are missing are judged by the detectors, which know when they matter."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    folder.config = folder.json("config.json") or {}
    folder.adapter_config = folder.json("adapter_config.json")
    folder.trainer_state = folder.json("trainer_state.json")
    add_weights(folder)
    for inner in sorted(n for n in folder.names if _FOLDERS.match(n)):
        folder.part(inner)
    for name in (
        first_of(("pytorch_model_fsdp.bin",), folder.names),
        first_of(("optimizer.pt", "optimizer.bin"), folder.names),
        first_of(("scheduler.pt",), folder.names),
        first_of(("scaler.pt",), folder.names),
        first_of(("training_args.bin",), folder.names),
    ):
        if name is not None:
            folder.part(name)
    folder.rng = any(_RNG.match(name) for name in folder.names)
    folder.step = _step(folder, path)
    return folder.checkpoint("hf-trainer")


def _step(folder: Folder, path: Path) -> int | None:
    step = (folder.trainer_state or {}).get("global_step")
    if isinstance(step, int) and not isinstance(step, bool):
        return step
    match = re.search(r"checkpoint-(\d+)$", path.name)
    return int(match[1]) if match else folder.step


FORMAT = Format(name="hf-trainer", title="Hugging Face Trainer folder", folder=True, recognise=recognise, read=read)
