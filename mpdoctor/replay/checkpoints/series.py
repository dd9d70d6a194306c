"""The checkpoints of one run, side by side in a folder, in the order of their steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mpdoctor.replay.checkpoints.files import Refused, inside, names_in

_STEP = re.compile(
    r"^(?:checkpoint|ckpt|global_step|global-step|step|iter|iteration|epoch|model|state|save)?[-_=]?(?:.*step[-_=]?)?(\d{1,12})"
    r"(?:[-_]?steps?)?(?:\.(?:pt|pth|ckpt|bin|safetensors|nemo))?$",
    re.IGNORECASE,
)
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.|_rank_|^optimizer_|^scheduler_|^model_\d+\.|^rng|^random")


@dataclass(frozen=True, slots=True)
class Member:
    """A checkpoint of a series: its path, and the step (or epoch) in its name."""

    path: Path
    step: int


def step_of(name: str) -> int | None:
    """The step that a name counts (`checkpoint-500`, `global_step300`, `epoch=3-step=400.ckpt`); None for other names."""
    if _SHARD.search(name):
        return None
    match = _STEP.match(name)
    return int(match[1]) if match else None


def members_of(folder: Path) -> tuple[Member, ...]:
    """The checkpoints in a folder, oldest first; names that count steps but lead out of the folder are left out. Raises Refused."""
    found = []
    for name in names_in(folder):
        step = step_of(name)
        if step is None:
            continue
        try:
            found.append(Member(inside(folder, name), step))
        except Refused:
            continue
    return tuple(sorted(found, key=lambda m: (m.step, m.path.name)))
