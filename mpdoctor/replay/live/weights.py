"""Tensors of a checkpoint as torch tensors, read by safe loaders only."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.checkpoints import Checkpoint, Role, TensorEntry


def load_states(checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """(model state dict, optimizer state dict or None) of a checkpoint.

    Raises UnreadableInput for a file that torch's weights-only loader refuses.
    """
    weights = load_weights(checkpoint)
    optimizer = next((f for f in _files(checkpoint, Role.FIRST_MOMENT) if f.suffix in (".pt", ".bin", ".pth", ".ckpt")), None)
    return weights, load_torch_file(optimizer) if optimizer is not None and optimizer.name == "optimizer.pt" else None


def load_weights(checkpoint: Checkpoint, *roles: Role) -> dict[str, torch.Tensor]:
    """All weights and buffers of a checkpoint by name, in their stored dtypes: those of the given roles, else the model's own."""
    found: dict[str, torch.Tensor] = {}
    entries = checkpoint.by_role(*(roles or (Role.WEIGHT,)))
    for file in dict.fromkeys(entry.file for entry in entries):
        mine = [e for e in entries if e.file == file]
        if file.suffix == ".safetensors":
            found.update(_safetensors(file, mine))
        else:
            loaded = load_torch_file(file)
            flat = _flat(loaded)
            for entry in mine:
                if entry.name in flat:
                    found[entry.name] = flat[entry.name]
    return found


def load_torch_file(path: Path) -> Any:
    """A torch file by the weights-only loader: nothing in it is executed."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableInput(f"{path}: torch's weights-only loader refuses it: {reason}", "Nothing of the file was executed.") from None


def _safetensors(file: Path, entries: list[TensorEntry]) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework="pt") as opened:
            return {e.name: opened.get_tensor(e.name) for e in entries if e.name in opened.keys()}  # noqa: SIM118 - keys() is a method of the file
    except SafetensorError as error:
        raise UnreadableInput(f"{file}: cannot be read: {error}", "The file is damaged; the autopsy says what can still be read.") from None


def _files(checkpoint: Checkpoint, *roles: Role) -> list[Path]:
    return list(dict.fromkeys(e.file for e in checkpoint.by_role(*roles)))


def _flat(value: Any, prefix: str = "") -> dict[str, torch.Tensor]:
    """Tensors of nested dicts under dotted names, and under their innermost state dict's own names."""
    found: dict[str, torch.Tensor] = {}
    if isinstance(value, dict):
        for key, item in value.items():
            name = f"{prefix}.{key}" if prefix else str(key)
            if isinstance(item, torch.Tensor):
                found[name] = item
                found.setdefault(str(key), item)
            elif isinstance(item, dict):
                found.update(_flat(item, name))
    return found
