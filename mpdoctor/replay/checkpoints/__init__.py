"""Checkpoints on disk, read without torch and without running anything that they contain.

`open_checkpoint` recognises the format by content (one file each under `formats/`) and lists tensors,
settings, log and problems; values are read later, by `mpdoctor.replay.autopsy`. Pickles are read by
an interpreter that imports nothing (`pickles/`). Imports core only.
"""

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind, Role, TensorEntry
from mpdoctor.replay.checkpoints.format import open_checkpoint
from mpdoctor.replay.checkpoints.settings import compute_dtype, settings_from

__all__ = ["Checkpoint", "Problem", "ProblemKind", "Role", "TensorEntry", "compute_dtype", "open_checkpoint", "settings_from"]
