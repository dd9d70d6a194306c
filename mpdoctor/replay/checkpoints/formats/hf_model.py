"""A model folder of Hugging Face transformers, diffusers or PEFT: weights and config.json, no training state."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint
from mpdoctor.replay.checkpoints.files import names_in
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder
from mpdoctor.replay.checkpoints.weights import add_weights, has_weights


def recognise(seen: Seen) -> int:
    """Weights under Hugging Face's names."""
    return 40 if has_weights(seen.names) else 0


def read(path: Path) -> Checkpoint:
    """Read weights and configuration."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    folder.config = folder.json("config.json") or {}
    folder.adapter_config = folder.json("adapter_config.json")
    add_weights(folder)
    return folder.checkpoint("hf-peft" if folder.adapter_config else "hf-model")


FORMAT = Format(name="hf-model", title="Hugging Face model folder", folder=True, recognise=recognise, read=read)
