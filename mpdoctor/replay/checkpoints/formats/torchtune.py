"""A folder that torchtune wrote: weights (whole or adapter) and `recipe_state.pt`."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Role
from mpdoctor.replay.checkpoints.files import inside, names_in
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder
from mpdoctor.replay.checkpoints.weights import add_weights

_WEIGHTS = re.compile(r"^(ft-)?(hf_model|meta_model|torchtune_model)_\d+(_\d+)?\.pt$|^ft-model-\d{5}-of-\d{5}\.(safetensors|bin)$")
_ADAPTER = re.compile(r"^adapter_\d+\.pt$")
_RECIPE = "recipe_state.pt"


def recognise(seen: Seen) -> int:
    """Torchtune's own names."""
    own = any(_WEIGHTS.match(name) or _ADAPTER.match(name) for name in seen.names)
    return 55 if own or _RECIPE in seen.names else 0


def read(path: Path) -> Checkpoint:
    """Read weights, adapter and the recipe's state."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    folder.config = folder.json("config.json") or {}
    folder.adapter_config = folder.json("adapter_config.json")
    own = sorted(name for name in folder.names if _WEIGHTS.match(name))
    for name in own:
        folder.part(name)
    if not own:
        add_weights(folder)
    for name in sorted(name for name in folder.names if _ADAPTER.match(name)):
        folder.part(name, role=Role.ADAPTER)
    if _RECIPE in folder.names:
        folder.part(_RECIPE)
    elif "recipe_state" in folder.names and _RECIPE in names_in(inside(path, "recipe_state")):
        folder.part(f"recipe_state/{_RECIPE}")
    return folder.checkpoint("torchtune")


FORMAT = Format(name="torchtune", title="torchtune folder", folder=True, recognise=recognise, read=read)
