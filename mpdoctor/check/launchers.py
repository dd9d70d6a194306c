"""Programs that a launch line starts with."""

from __future__ import annotations

from collections.abc import Sequence

LAUNCHERS = frozenset((
    "torchrun", "python", "python3", "accelerate", "deepspeed", "srun", "mpirun", "swift", "llamafactory-cli", "axolotl", "tune", "composer",
    "fairseq-hydra-train", "fairseq-train", "torch.distributed.launch", "torch.distributed.run", "uv", "poetry", "nohup", "env", "exec", "megatron",
    "trl", "yolo", "lightning", "bash", "sh", "time", "pdsh", "ray", "singularity", "docker",
))  # fmt: skip


def is_launch_line(words: Sequence[str]) -> bool:
    """Whether words start like a launch: a launcher's name, or an environment variable before one."""
    if not words:
        return False
    name, separator, _ = words[0].partition("=")
    return words[0].rpartition("/")[2] in LAUNCHERS or (bool(separator) and name.isidentifier() and name.isupper() and len(words) > 1)
