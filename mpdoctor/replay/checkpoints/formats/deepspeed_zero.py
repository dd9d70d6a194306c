"""A DeepSpeed checkpoint: `global_stepN` with model states and optimizer shards, and the folder around it with `latest`."""

from __future__ import annotations

import re
from pathlib import Path

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind
from mpdoctor.replay.checkpoints.files import Refused, inside, names_in, read_bytes
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.merge import Folder

_MODEL = re.compile(r"^(mp_rank_\d+|zero_pp_rank_\d+_mp_rank_\d+|layer_\d+-model_\d+|expert_\d+_mp_rank_\d+)[_-]?model_states\.pt$")
_OPTIMIZER = re.compile(r"^(?:(?:bf16|fp16)_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$")
_STEP = re.compile(r"global_step(\d+)$")


def recognise(seen: Seen) -> int:
    """Model states under DeepSpeed's names, or `latest` beside the folder that it names."""
    if any(_MODEL.match(name) or _OPTIMIZER.match(name) for name in seen.names):
        return 75
    return 65 if "latest" in seen.names and ("zero_to_fp32.py" in seen.names or any(_STEP.match(name) for name in seen.names)) else 0


def read(path: Path) -> Checkpoint:
    """Read all ranks. Values of rank N are named `rank_N/...`, as each rank holds its own part under the same names."""
    names = frozenset(names_in(path))
    folder = Folder(path=path, names=names)
    states = sorted(name for name in names if _MODEL.match(name))
    shards = sorted((name for name in names if _OPTIMIZER.match(name)), key=_rank)
    if not states and not shards:
        return _latest(path, folder)
    for name in states:
        folder.part(name, prefix=_label(name) if len(states) > 1 else "")
    for name in shards:
        folder.part(name, prefix=_label(name) if len(shards) > 1 else "")
    _missing_ranks(folder, shards)
    match = _STEP.search(path.name)
    folder.step = int(match[1]) if match else folder.step
    return folder.checkpoint("deepspeed")


def _latest(path: Path, folder: Folder) -> Checkpoint:
    """The folder around: read the checkpoint that `latest` names."""
    name = read_bytes(inside(path, "latest"), 4096).decode("utf-8", "replace").strip()
    if name not in folder.names:
        place = inside(path, name)
        raise Refused(ProblemKind.MISSING, place, f"`latest` names it, and it is not there (there are: {', '.join(sorted(folder.names))[:200]})")
    folder.part(name)
    return folder.checkpoint("deepspeed")


def _missing_ranks(folder: Folder, shards: list[str]) -> None:
    """ZeRO needs the optimizer shard of every rank; the model states say how many ranks there were."""
    world = folder.extra.get("dp_world_size")
    held = {_rank(name) for name in shards}
    if not isinstance(world, int) or not shards or len(held) >= world:
        return
    absent = [rank for rank in range(min(world, 100_000)) if rank not in held]
    if absent:
        text = f"the run had {world} data-parallel ranks; the optimizer shards of {len(absent)} are missing (rank {absent[0]} first)"
        folder.problems.append(Problem(kind=ProblemKind.MISSING, file=folder.path, text=text))


def _rank(name: str) -> int:
    match = _OPTIMIZER.match(name)
    return int(match[1]) if match else -1


def _label(name: str) -> str:
    return re.sub(r"_(model|optim)_states\.pt$", "", name)


FORMAT = Format(name="deepspeed", title="DeepSpeed checkpoint folder", folder=True, recognise=recognise, read=read)
