"""Files of torch.save, new and legacy: tensors by name and place, settings as plain values, nothing executed."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.checkpoints import ProblemKind, Role, TensorEntry, open_checkpoint
from mpdoctor.replay.checkpoints.numbers import scalar

BOTH = pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])


def save(value: Any, path: Path, *, new: bool = True) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=new)
    return path


def numbers(tensor: TensorEntry, count: int) -> tuple[float, ...]:
    data = tensor.file.read_bytes()[tensor.offset :]
    return struct.unpack_from(f"<{count}f", data)


@BOTH
def test_state_dict_is_listed_with_its_values_in_place(tmp_path: Path, new: bool) -> None:
    weights = {"layer.weight": torch.arange(12.0).reshape(3, 4), "layer.bias": torch.tensor([5.0, 6.0]), "h": torch.ones(3, dtype=torch.bfloat16)}
    found = open_checkpoint(save(weights, tmp_path / "m.pt", new=new))
    assert not found.problems
    by_name = {t.name: t for t in found.tensors}
    assert by_name["layer.weight"].shape == (3, 4) and numbers(by_name["layer.weight"], 12) == tuple(range(12))
    assert numbers(by_name["layer.bias"], 2) == (5.0, 6.0)
    assert by_name["h"].dtype == "bfloat16"


@BOTH
def test_views_of_one_storage_lie_at_their_own_places(tmp_path: Path, new: bool) -> None:
    base = torch.arange(12.0)
    found = open_checkpoint(save({"tail": base[8:], "t": base.reshape(3, 4).t(), "again": base}, tmp_path / "m.pt", new=new))
    by_name = {t.name: t for t in found.tensors}
    assert numbers(by_name["tail"], 4) == (8, 9, 10, 11)
    assert by_name["t"].shape == (4, 3) and by_name["t"].strides == (1, 4)
    assert by_name["again"].place == by_name["t"].place


@BOTH
def test_a_training_state_is_taken_apart(tmp_path: Path, new: bool) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    scaler = {"scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 7}
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler,
        "lr_scheduler": scheduler.state_dict(),
        "args": {"fp16": True, "lr": 3e-4},
        "global_step": 41,
        "rng_state": torch.get_rng_state(),
    }
    found = open_checkpoint(save(state, tmp_path / "state.pt", new=new))
    roles = {t.name: t.role for t in found.tensors}
    assert roles["weight"] is Role.WEIGHT
    assert roles["optimizer.state.0.exp_avg"] is Role.FIRST_MOMENT and roles["optimizer.state.1.exp_avg_sq"] is Role.SECOND_MOMENT
    assert roles["optimizer.state.0.step"] is Role.STEP and roles["rng_state"] is Role.RNG
    assert found.step == 41 and found.scaler == scaler and found.rng
    assert found.param_groups[0]["lr"] == 3e-4 and found.param_groups[0]["params"] == 2
    assert found.training_args == {"fp16": True, "lr": 3e-4}
    assert found.scheduler is not None and found.scheduler["last_epoch"] == 0


def test_a_number_kept_in_a_tensor_is_read(tmp_path: Path) -> None:
    found = open_checkpoint(save({"scale": torch.tensor(512.0), "_growth_tracker": torch.tensor(3, dtype=torch.int32)}, tmp_path / "scaler.pt"))
    assert found.scaler == {"scale": 512.0, "_growth_tracker": 3}
    assert scalar(found.tensors[0]) == 512.0


def test_a_whole_pickled_model_is_read_by_parameter_name(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    found = open_checkpoint(save(model, tmp_path / "model.pt"))
    assert {t.name for t in found.tensors} == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_a_zip_file_cut_off_anywhere_gives_a_message_or_what_is_left(tmp_path: Path) -> None:
    whole = save({"a": torch.ones(1000), "b": torch.ones(1000), "c": torch.ones(1000)}, tmp_path / "m.pt").read_bytes()
    left = []
    for cut in range(20, len(whole), 331):
        path = tmp_path / f"cut{cut}.pt"
        path.write_bytes(whole[:cut])
        try:
            found = open_checkpoint(path)
        except UnreadableInput as refused:
            assert "cut off" in refused.message or "not a checkpoint" in refused.message
        else:
            assert any(p.kind is ProblemKind.TRUNCATED for p in found.problems)
            left.append(len(found.tensors))
    assert left == sorted(left) and {0, 1, 2} <= set(left)


def test_a_legacy_file_cut_off_keeps_the_storages_before_the_cut(tmp_path: Path) -> None:
    whole = save({"a": torch.ones(1000), "b": torch.ones(1000)}, tmp_path / "m.pt", new=False).read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[:-2000])
    found = open_checkpoint(tmp_path / "cut.pt")
    assert len(found.tensors) == 1
    assert ProblemKind.TRUNCATED in {p.kind for p in found.problems}


def test_a_zip_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(UnreadableInput, match="not one of torch"):
        open_checkpoint(tmp_path / "z.pt")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_weights_of_a_torchscript_archive_are_read(tmp_path: Path) -> None:
    torch.jit.script(torch.nn.Linear(2, 3)).save(str(tmp_path / "s.pt"))
    found = open_checkpoint(tmp_path / "s.pt")
    assert {t.name: t.shape for t in found.tensors} == {"weight": (3, 2), "bias": (3,)}
    assert not found.problems


def test_forms_of_tensors_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    sparse = torch.eye(3).to_sparse()
    found = open_checkpoint(save({"s": sparse, "w": torch.ones(2)}, tmp_path / "m.pt"))
    assert [t.name for t in found.tensors] == ["w"]
    assert [(p.kind, p.tensor) for p in found.problems] == [(ProblemKind.NOT_JUDGED, "s")]
