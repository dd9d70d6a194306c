"""The model's weights in a Hugging Face folder: one file, or shards with an index."""

from __future__ import annotations

import re
from typing import Any

from mpdoctor.replay.checkpoints.checkpoint import Problem, ProblemKind, Role
from mpdoctor.replay.checkpoints.files import Refused, inside
from mpdoctor.replay.checkpoints.merge import Folder

_SINGLE = ("model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin", "diffusion_pytorch_model.safetensors")
_INDEX = ("model.safetensors.index.json", "pytorch_model.bin.index.json", "diffusion_pytorch_model.safetensors.index.json")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(safetensors|bin)$")
WEIGHT_FILES = frozenset((*_SINGLE, *_INDEX))
"""Names by which a folder shows that it holds a model."""


def has_weights(names: frozenset[str]) -> bool:
    """Whether a folder holds weights under Hugging Face's names."""
    return bool(names & WEIGHT_FILES) or any(_SHARD.search(name) for name in names)


def add_weights(folder: Folder) -> bool:
    """Add the weights to `folder`; False when there are none.

    A folder with both safetensors and `.bin` weights is read as transformers reads it: safetensors.
    """
    for single, index in (("model.safetensors", _INDEX[0]), ("pytorch_model.bin", _INDEX[1]), (_SINGLE[4], _INDEX[2])):
        if single in folder.names:
            folder.part(single)
            break
        if index in folder.names:
            _sharded(folder, index)
            break
    else:
        _unindexed(folder)
    for adapter in ("adapter_model.safetensors", "adapter_model.bin"):
        if adapter in folder.names:
            folder.part(adapter, role=Role.ADAPTER)
            break
    return any(t.role in (Role.WEIGHT, Role.ADAPTER) for t in folder.tensors)


def _sharded(folder: Folder, index_name: str) -> None:
    index = folder.json(index_name)
    weight_map = index.get("weight_map") if index else None
    if not isinstance(weight_map, dict) or not all(isinstance(v, str) for v in weight_map.values()):
        if index is not None:
            folder.problems.append(
                Problem(kind=ProblemKind.MALFORMED, file=folder.path / index_name, text="the index has no weight_map of file names")
            )
        _unindexed(folder)
        return
    for name in sorted(set(weight_map.values())):
        _shard(folder, name, {tensor for tensor, file in weight_map.items() if file == name})
    _check_sum(folder, index, index_name)
    unlisted = sorted(
        name for name in folder.names if _SHARD.search(name) and name.endswith(index_name.split(".")[1]) and name not in set(weight_map.values())
    )
    for name in unlisted:
        text = f"{index_name} does not list this shard, so no loader reads it"
        folder.problems.append(Problem(kind=ProblemKind.DISAGREES, file=folder.path / name, text=text))


def _shard(folder: Folder, name: str, listed: set[str]) -> None:
    try:
        inside(folder.path, name)
    except Refused as refused:
        folder.problems.append(refused.problem)
        return
    if name not in folder.names and "/" not in name:
        folder.missing(name, f"the index places {len(listed)} tensors in it")
        return
    part = folder.part(name)
    if part is None:
        return
    held = {t.name for t in part.tensors}
    broken = {p.tensor for p in part.problems}
    for kind, names, text in (
        ("absent", sorted(listed - held - broken), "the index places {} in this shard, and it is not there"),
        ("extra", sorted(held - listed), "this shard holds {}, which the index does not place in it"),
    ):
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            problem_kind = ProblemKind.MISSING if kind == "absent" else ProblemKind.DISAGREES
            folder.problems.append(Problem(kind=problem_kind, file=folder.path / name, text=text.format(shown), tensor=names[0]))


def _check_sum(folder: Folder, index: dict[str, Any] | None, index_name: str) -> None:
    metadata = index.get("metadata") if index else None
    announced = metadata.get("total_size") if isinstance(metadata, dict) else None
    held = sum(t.extent for t in folder.tensors if t.role is Role.WEIGHT)
    if isinstance(announced, int | float) and not isinstance(announced, bool) and announced > 0 and not folder.problems and held < announced * 0.999:
        text = f"the index announces {int(announced):,} bytes of weights, and the shards hold {held:,}"
        folder.problems.append(Problem(kind=ProblemKind.DISAGREES, file=folder.path / index_name, text=text))


def _unindexed(folder: Folder) -> None:
    """Shards without an index: read what is there, and say which numbers are missing."""
    shards = sorted(name for name in folder.names if _SHARD.search(name))
    for name in shards:
        folder.part(name)
    numbers: dict[tuple[str, int], set[int]] = {}
    for name in shards:
        match = _SHARD.search(name)
        if match:
            stem = name[: match.start()]
            numbers.setdefault((stem + "|" + match[3], int(match[2])), set()).add(int(match[1]))
    for (stem, count), present in numbers.items():
        absent = [n for n in range(1, min(count, 10_000) + 1) if n not in present]
        if absent:
            prefix, _, suffix = stem.partition("|")
            name = f"{prefix}-{absent[0]:05d}-of-{count:05d}.{suffix}"
            folder.missing(name, f"{len(absent)} of {count} shards are missing")
