"""A Megatron-LM checkpoint: `iter_N/mp_rank_XX/model_optim_rng.pt`, and the folder around it."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, inside, names_in, read_bytes
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder

_TRACKER = "latest_checkpointed_iteration.txt"
_RANK = re.compile(r"^mp_rank_\d{2}(_\d{3}){0,2}$")
_FILES = ("model_optim_rng.pt", "model_rng.pt", "distrib_optim.pt", "model_weights.ckpt")


def recognise(seen: Seen) -> int:
    """Rank folders, the tracker file, or Megatron's own files inside torch's distributed format."""
    if any(_RANK.match(name) for name in seen.names):
        return 75
    if _TRACKER in seen.names:
        return 76
    return 72 if "common.pt" in seen.names and ".metadata" in seen.names else 0


def read(path: Path) -> Checkpoint:
    """Read all ranks; values of one rank are named `mp_rank_XX/...` where there are several."""
    folder = Folder(path=path, names=frozenset(names_in(path)))
    if _TRACKER in folder.names:
        return _tracked(path, folder)
    ranks = sorted(name for name in folder.names if _RANK.match(name))
    for rank in ranks:
        place = inside(path, rank)
        held = [name for name in names_in(place) if name in _FILES]
        if not held:
            folder.missing(f"{rank}/{_FILES[0]}", "the rank's folder holds no state")
        for name in held:
            folder.part(f"{rank}/{name}", prefix=rank if len(ranks) > 1 else "")
    if not ranks:
        folder.part("common.pt")
        _distributed(folder)
    match = re.search(r"iter_(\d+)$", path.name)
    folder.step = int(match[1]) if match else folder.step
    return folder.checkpoint("megatron")


def _distributed(folder: Folder) -> None:
    from mpdoctor.replay.checkpoints.formats import torch_dcp

    try:
        found = torch_dcp.read(folder.path)
    except Refused as refused:
        folder.problems.append(refused.problem)
        return
    folder.problems.extend(found.problems)
    folder.add("", found)


def _tracked(path: Path, folder: Folder) -> Checkpoint:
    """The folder around: read the iteration that the tracker names."""
    text = read_bytes(inside(path, _TRACKER), 64).decode("ascii", "replace").strip()
    name = "release" if text == "release" else f"iter_{int(text):07d}" if text.isdigit() and len(text) < 12 else ""
    if not name:
        raise Refused(ProblemKind.MALFORMED, path / _TRACKER, f"it holds {text!r}, not an iteration")
    if name not in folder.names:
        raise Refused(ProblemKind.MISSING, path / name, f"{_TRACKER} names it, and it is not there")
    folder.part(name)
    return folder.checkpoint("megatron")


FORMAT = Format(name="megatron", title="Megatron-LM checkpoint folder", folder=True, recognise=recognise, read=read)
