"""The autopsy of whole checkpoints: real files in, verdicts on their numbers out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mpdoctor.replay.autopsy import AutopsyResult, TensorStats, autopsy, examine
from mpdoctor.replay.checkpoints import ProblemKind, Role, open_checkpoint


def judged(path: Path) -> AutopsyResult:
    return autopsy(open_checkpoint(path))


def named(result: AutopsyResult, name: str) -> TensorStats:
    return next(t for t in result.tensors if t.name == name)


@pytest.mark.parametrize("new", [True, False, None], ids=["zip", "legacy", "safetensors"])
def test_the_first_bad_element_is_named_by_its_index(tmp_path: Path, new: bool | None) -> None:
    weight = torch.ones(4, 5)
    weight[2, 3], weight[3, 0] = math.inf, math.nan
    if new is None:
        save_file({"w": weight}, tmp_path / "m.safetensors")
        result = judged(tmp_path / "m.safetensors")
    else:
        torch.save({"w": weight}, tmp_path / "m.pt", _use_new_zipfile_serialization=new)
        result = judged(tmp_path / "m.pt")
    stats = named(result, "w")
    assert (stats.nans, stats.infs, stats.first_nonfinite, stats.numel) == (1, 1, (2, 3), 20)


def test_views_are_judged_by_their_own_elements(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    base[1, 4] = math.nan
    views = {"transposed": base.t(), "column": base[:, 4], "clean": base[2:, 1:3], "expanded": torch.tensor([7.0]).expand(3, 1000)}
    torch.save(views, tmp_path / "m.pt")
    result = judged(tmp_path / "m.pt")
    assert named(result, "transposed").first_nonfinite == (4, 1)
    assert (named(result, "column").numel, named(result, "column").first_nonfinite) == (4, (1,))
    assert named(result, "clean").nonfinite == 0 and named(result, "clean").amax == 20.0
    assert named(result, "expanded").amax == 7.0


def test_tied_weights_are_read_once(tmp_path: Path) -> None:
    weight = torch.ones(1000)
    torch.save({"a": weight, "b": weight}, tmp_path / "m.pt")
    result = judged(tmp_path / "m.pt")
    assert result.bytes_read == 4000 and len(result.tensors) == 2


def test_optimizer_scaler_and_dtypes_are_summed_up(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for _ in range(3):
        model(torch.randn(4, 8, dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
    scaler = {"scale": 0.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0}
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler}, tmp_path / "c.pt")
    result = judged(tmp_path / "c.pt")
    assert result.optimizer is not None and result.optimizer.steps == (3, 3)
    assert result.optimizer.moment_dtypes == {"bfloat16": 2 * 2 * 72}
    assert result.scaler is not None and result.scaler.scale == 0.0 and result.scaler.growth_interval == 2000
    assert result.lr == 1e-5
    weight = named(result, "weight")
    assert weight.share(weight.unmoved) > 0.9
    assert result.modules[0].numel == 72 and result.modules[0].dtypes == ("bfloat16",)


def test_a_second_moment_that_underflowed_is_seen(tmp_path: Path) -> None:
    m = torch.full((100,), 1e-4, dtype=torch.float16)
    state = {"state": {0: {"step": torch.tensor(5.0), "exp_avg": m, "exp_avg_sq": (m * m)}}, "param_groups": [{"lr": 1e-3, "params": [0]}]}
    torch.save(state, tmp_path / "optimizer.pt")
    result = judged(tmp_path / "optimizer.pt")
    assert result.optimizer is not None
    assert result.optimizer.underflowed == {"state.0.exp_avg_sq": 1.0}


def test_a_file_that_shrinks_after_it_was_listed_is_a_problem_and_the_rest_is_judged(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    save_file({"a": torch.ones(5000)}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"b": torch.ones(5000)}, tmp_path / "model-00002-of-00002.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    whole = (tmp_path / "model-00001-of-00002.safetensors").read_bytes()
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(whole[:3000])
    result = autopsy(checkpoint)
    assert [t.name for t in result.tensors] == ["b"]
    assert [p.kind for p in result.problems] == [ProblemKind.TRUNCATED]
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert {p.kind for p in autopsy(checkpoint).problems} == {ProblemKind.TRUNCATED, ProblemKind.MISSING}


def test_progress_counts_all_bytes(tmp_path: Path) -> None:
    save_file({"a": torch.ones(500), "n": torch.ones(3, dtype=torch.int64), "b": torch.ones(7, dtype=torch.float16)}, tmp_path / "m.safetensors")
    seen: list[tuple[int, int, str]] = []
    autopsy(open_checkpoint(tmp_path / "m.safetensors"), progress=lambda *args: seen.append(args))
    assert seen[-1] == (2014, 2014, "m.safetensors") and [s[0] for s in seen] == sorted(s[0] for s in seen)


def test_large_checkpoints_are_sampled_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "EXACT_BYTES", 1000)
    save_file({"big": torch.randn(300_000), "small": torch.zeros(100)}, tmp_path / "m.safetensors")
    result = judged(tmp_path / "m.safetensors")
    assert not named(result, "big").exact and named(result, "small").exact


def test_integers_are_listed_and_not_judged(tmp_path: Path) -> None:
    save_file({"ids": torch.arange(5), "w": torch.ones(2)}, tmp_path / "m.safetensors")
    result = judged(tmp_path / "m.safetensors")
    assert [t.name for t in result.tensors] == ["w"] and result.unjudged == 1


def test_arrays_inside_a_pickle_are_judged(tmp_path: Path) -> None:
    import pickle

    import numpy as np

    weights = {"w": np.array([[1.0, np.nan]], dtype=np.float32), "v": np.asfortranarray(np.array([[1.0, 2.0], [np.inf, 4.0]]))}
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(weights))
    result = judged(tmp_path / "m.pkl")
    assert named(result, "w").first_nonfinite == (0, 1)
    assert named(result, "v").first_nonfinite == (1, 0)
    assert named(result, "w").entry.role is Role.WEIGHT
