"""Reading checkpoints and logs loads no torch, transformers or pandas, opens nothing for writing, and lets go when interrupted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoints import open_checkpoint

FIXTURE = Path(__file__).parents[3] / "fixtures" / "checkpoints" / "healthy-fp16-dynamic"
SCRIPT = """
import sys
from pathlib import Path
opened = []
sys.addaudithook(lambda event, args: opened.append(args) if event == "open" else None)
from mpdoctor.replay.checkpoints import open_checkpoint
from mpdoctor.replay.history import read_history
checkpoint = open_checkpoint(Path(sys.argv[1]))
history = read_history(checkpoint)
assert checkpoint.tensors and history.rows and checkpoint.training_args
heavy = {"torch", "transformers", "pandas", "numpy", "safetensors", "accelerate"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, judge_checkpoint
judge_checkpoint(CheckpointEvidence(checkpoint=checkpoint, autopsy=autopsy(checkpoint), history=history))
assert not (heavy - {"numpy"}) & set(sys.modules)
writing = [args for args in opened if isinstance(args[1], str) and set(args[1]) & set("wax+") or isinstance(args[2], int) and args[2] & 3]
assert not [args for args in writing if not str(args[0]).endswith(".pyc") and "__pycache__" not in str(args[0])], writing
"""


def test_no_heavy_module_is_loaded_and_nothing_is_opened_for_writing() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(FIXTURE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def open_files() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_an_interrupt_leaves_no_file_open(tmp_path: Path) -> None:
    save_file({"a": torch.ones(10), "b": torch.ones(10)}, tmp_path / "m.safetensors")
    checkpoint = open_checkpoint(tmp_path / "m.safetensors")
    before = open_files()

    def interrupt(done: int, total: int, file: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        autopsy(checkpoint, progress=interrupt)
    assert open_files() == before


def test_a_folder_that_may_only_be_read_is_judged(tmp_path: Path) -> None:
    save_file({"a": torch.ones(10)}, tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert autopsy(open_checkpoint(tmp_path)).tensors
    finally:
        tmp_path.chmod(0o700)
