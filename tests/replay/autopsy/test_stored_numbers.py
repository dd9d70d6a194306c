"""The autopsy's numbers as a report shows them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from mpdoctor.core.jsonable import to_json
from mpdoctor.replay.autopsy import autopsy
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence
from mpdoctor.replay.checkpoints import open_checkpoint
from mpdoctor.replay.stored_numbers import stored_measurements

FIXTURE = Path(__file__).parents[3] / "fixtures" / "checkpoints" / "healthy-fp16-dynamic"


def measured(path: Path) -> dict[str, object]:
    checkpoint = open_checkpoint(path)
    return stored_measurements(CheckpointEvidence(checkpoint=checkpoint, autopsy=autopsy(checkpoint)))


def test_a_trainer_checkpoint_in_sentences_and_by_module() -> None:
    found = json.loads(to_json(measured(FIXTURE)))
    assert "float32" in found["stored_weights"] and "steps taken" in found["stored_optimizer"] and "32768" in found["stored_scale"]
    modules = found["stored_modules"]
    assert [m["amax"] for m in modules] == sorted((m["amax"] for m in modules), reverse=True)
    assert sum(m["values"] for m in modules) == sum(t.numel for t in open_checkpoint(FIXTURE).tensors if t.role == "weight")


def test_modules_with_bad_values_come_first(tmp_path: Path) -> None:
    save_file({"a.w": torch.full((3,), 9.0), "b.w": torch.tensor([1.0, float("nan")])}, tmp_path / "m.safetensors")
    found = measured(tmp_path / "m.safetensors")
    assert [m["module"] for m in found["stored_modules"]] == ["b", "a"]  # type: ignore[attr-defined]
    assert "stored_optimizer" not in found and "stored_scale" not in found


def test_a_series_is_one_line_per_checkpoint(tmp_path: Path) -> None:
    for step in (1, 2):
        (tmp_path / f"checkpoint-{step}").mkdir()
        save_file({"w": torch.full((2,), float(step))}, tmp_path / f"checkpoint-{step}" / "model.safetensors")
    assert measured(tmp_path)["checkpoints"] == ["checkpoint-1: largest weight 1", "checkpoint-2: largest weight 2"]
