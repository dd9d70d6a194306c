"""From what the user names to files: folders are walked, checkpoint folders are one thing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpdoctor.check.sources.text import MAX_BYTES

SUFFIXES = frozenset((".yaml", ".yml", ".json", ".jsonc", ".toml", ".py", ".ipynb", ".sh", ".slurm", ".sbatch"))
LARGEST = 1 << 20
"""Bytes; larger files met on a walk are data, not configs. Notebooks hold pictures and may be larger, and a file that is named is read up to
its source's own limit."""
MAX_DEPTH = 25
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv", "site-packages", "wandb", "mlruns", "dist", "build"))
_CHECKPOINT_MARKS = ("trainer_state.json", "training_args.bin", "scaler.pt", "optimizer.pt", "adapter_config.json")
_WEIGHTS = re.compile(r"(model|pytorch_model|adapter_model|diffusion_pytorch_model)(-\d{5}-of-\d{5})?\.(safetensors|bin)(\.index\.json)?")
_TELLING = re.compile(
    r"learning_rate|\blr\b|base_lr|lr0|precision|fp16|bf16|amp|dtype|optim|SOLVER|scheduler|_base_|backward|autocast|torch|transformers|model_type|max_steps"
)


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a checkpoint: weights, or what a trainer saves beside them."""
    try:
        names = {entry.name for entry in os.scandir(folder)}
    except OSError:
        return False
    return any(mark in names for mark in _CHECKPOINT_MARKS) or ("config.json" in names and any(_WEIGHTS.fullmatch(name) for name in names))


def walked(folder: Path) -> Iterator[Path]:
    """Files below a folder that may be configs or scripts, and checkpoint folders, in the order of their names.

    Hidden folders, environments and what .gitignore excludes are left out, links to folders are not followed.
    """
    yield from _walk(folder, [], 0)


def _walk(folder: Path, ignored: list[tuple[Path, Any]], depth: int) -> Iterator[Path]:
    if is_checkpoint(folder):
        yield folder
        return
    rules = _gitignore(folder)
    ignored = [*ignored, (folder, rules)] if rules else ignored
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        path = folder / entry.name
        try:
            is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file()
        except OSError:
            continue
        if _excluded(path, ignored, is_folder=is_folder):
            continue
        if is_folder and depth < MAX_DEPTH and not (path / "pyvenv.cfg").exists():
            yield from _walk(path, ignored, depth + 1)
        elif is_file and (suffix := path.suffix.lower()) in SUFFIXES and entry.stat().st_size <= (MAX_BYTES if suffix == ".ipynb" else LARGEST):
            yield path


def may_be_training(text: str) -> bool:
    """Whether a text that was met on a walk mentions anything that training configs and scripts are made of."""
    return _TELLING.search(text) is not None


def _gitignore(folder: Path) -> Any:
    file = folder / ".gitignore"
    try:
        if not file.is_file():
            return None
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines[:10_000])
    except ValueError:  # a pattern that git would not take either
        return None


def _excluded(path: Path, ignored: list[tuple[Path, Any]], *, is_folder: bool) -> bool:
    for folder, rules in ignored:
        name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
        if rules.match_file(name):
            return True
    return False
