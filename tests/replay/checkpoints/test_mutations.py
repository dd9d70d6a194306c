"""Small valid files, mutated thousands of times: every outcome is a judgement or one clear refusal, and nothing is written."""

from __future__ import annotations

import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from mpdoctor.core.errors import MpdoctorError
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, judge_checkpoint
from mpdoctor.replay.checkpoints import open_checkpoint
from mpdoctor.replay.history import read_history

EXAMPLES = 5000
"""Mutations in all, spread evenly over the kinds of file."""


def state() -> dict[str, object]:
    weights = {"a.weight": torch.ones(3, 4), "b": torch.ones(2, dtype=torch.bfloat16)}
    moments = {0: {"step": torch.tensor(3.0), "exp_avg": torch.ones(3), "exp_avg_sq": torch.ones(3)}}
    return {
        "model": weights,
        "optimizer": {"state": moments, "param_groups": [{"lr": 1e-3, "params": [0]}]},
        "scaler": {"scale": 1024.0, "_growth_tracker": 3, "growth_interval": 2000},
        "args": {"fp16": True},
        "global_step": 7,
    }


def safetensors(path: Path) -> Path:
    save_file({"a.weight": torch.ones(3, 4), "b": torch.ones(2, dtype=torch.float16)}, path / "model.safetensors")
    return path / "model.safetensors"


def torch_zip(path: Path) -> Path:
    torch.save(state(), path / "m.pt")
    return path / "m.pt"


def torch_legacy(path: Path) -> Path:
    torch.save(state(), path / "m.pt", _use_new_zipfile_serialization=False)
    return path / "m.pt"


def plain_pickle(path: Path) -> Path:
    import numpy as np

    (path / "m.pkl").write_bytes(pickle.dumps({"w": np.ones(4, dtype=np.float32), "args": {"lr": 1e-3, "x": (1, None, {2})}}, protocol=4))
    return path / "m.pkl"


def nemo(path: Path) -> Path:
    torch.save({"w": torch.ones(4)}, path / "model_weights.ckpt")
    with tarfile.open(path / "m.nemo", "w") as archive:
        archive.add(path / "model_weights.ckpt", arcname="model_weights.ckpt")
    return path / "m.nemo"


def trainer_state(path: Path) -> Path:
    rows = [{"step": i, "loss": 4.0 / i, "grad_norm": 1.0, "learning_rate": 1e-3} for i in range(1, 9)]
    (path / "trainer_state.json").write_text(json.dumps({"global_step": 8, "log_history": rows}))
    return path / "trainer_state.json"


def csv_log(path: Path) -> Path:
    (path / "metrics.csv").write_text("step,train_loss,lr\n" + "".join(f"{i},{4.0 / (i + 1)},0.001\n" for i in range(9)))
    return path / "metrics.csv"


def events(path: Path) -> Path:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(path))
    for step in range(4):
        writer.add_scalar("train/loss", 4.0 - step, step)
    writer.close()
    return next(path.glob("events*"))


def dcp_metadata(path: Path) -> Path:
    dcp.save({"model": {"w": torch.ones(3)}, "step": 5}, checkpoint_id=path / "dcp")
    return path / "dcp" / ".metadata"


def dcp_data(path: Path) -> Path:
    dcp_metadata(path)
    return path / "dcp" / "__0_0.distcp"


BUILDERS = [safetensors, torch_zip, torch_legacy, plain_pickle, nemo, trainer_state, csv_log, events, dcp_metadata, dcp_data]

edits = st.lists(
    st.tuples(st.sampled_from(["flip", "cut", "insert", "copy", "zero", "huge"]), st.floats(0, 1), st.integers(0, 255), st.integers(1, 16)),
    min_size=1,
    max_size=6,
)


def mutated(data: bytes, changes: list[tuple[str, float, int, int]]) -> bytes:
    """`data` after the edits; places are shares of its length."""
    made = bytearray(data)
    for kind, place, value, count in changes:
        at = int(place * max(len(made) - 1, 0))
        if kind == "flip" and made:
            made[at] ^= value or 1
        elif kind == "cut":
            del made[at:]
        elif kind == "insert":
            made[at:at] = bytes([value]) * count
        elif kind == "copy":
            made[at:at] = made[at : at + count * 8]
        elif kind == "zero":
            made[at : at + count] = bytes(len(made[at : at + count]))
        elif kind == "huge":
            made[at : at + 8] = b"\xff" * len(made[at : at + 8])
    return bytes(made)


def judge(path: Path) -> None:
    """All that `mpdoctor replay` does with files."""
    try:
        checkpoint = open_checkpoint(path)
    except MpdoctorError:
        checkpoint = None
    history = None
    if checkpoint is None:
        if path.is_file():
            history = read_history(path)
    else:
        history = read_history(checkpoint)
    result = autopsy(checkpoint) if checkpoint is not None else None
    run = judge_checkpoint(CheckpointEvidence(checkpoint=checkpoint, autopsy=result, history=history))
    assert not run.crashes, run.crashes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("build", BUILDERS, ids=lambda b: b.__name__)
def test_mutated_files_are_judged_or_refused(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    path = build(tmp_path)
    original, target = path.read_bytes(), path.parent if path.parent.name == "dcp" else path
    judge(target)  # valid as it is

    @settings(max_examples=EXAMPLES // len(BUILDERS), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(changes=edits)
    def attempt(changes: list[tuple[str, float, int, int]]) -> None:
        data = mutated(original, changes)
        path.write_bytes(data)
        before = sorted(p.name for p in tmp_path.rglob("*"))
        try:
            judge(target)
        except MpdoctorError as error:
            assert error.message and str(error.exit_code.value) in "23"
            error.message.encode("utf-8")
        assert path.read_bytes() == data
        assert sorted(p.name for p in tmp_path.rglob("*")) == before

    attempt()
