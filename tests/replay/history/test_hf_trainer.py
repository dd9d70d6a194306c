"""The Hugging Face Trainer's log, made by a real Trainer whose loss becomes NaN."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.checkpoints import open_checkpoint, settings_from
from mpdoctor.replay.history import read_history


class BreaksAfter(torch.nn.Module):
    """A model whose loss is NaN from the given forward pass on."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)
        self.left = steps

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        self.left -= 1
        loss = (self.linear(x).squeeze(-1) - labels).abs().mean() + 3
        return {"loss": loss if self.left >= 0 else loss * math.nan}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trainer")
    arguments = transformers.TrainingArguments(
        output_dir=str(out),
        max_steps=12,
        save_steps=12,
        logging_steps=2,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        learning_rate=1e-3,
        disable_tqdm=True,
        adam_beta2=0.95,
        warmup_steps=3,
        max_grad_norm=0.5,
        gradient_accumulation_steps=1,
        seed=7,
    )
    data = [{"x": torch.ones(2), "labels": torch.tensor(1.0)} for _ in range(24)]
    transformers.Trainer(model=BreaksAfter(7), args=arguments, train_dataset=data).train()
    return out / "checkpoint-12"


def test_the_filtered_nan_is_seen_through(broken: Path) -> None:
    log = json.loads((broken / "trainer_state.json").read_text())["log_history"]
    assert [row["loss"] for row in log[-2:]] == [0.0, 0.0]  # what the Trainer writes for NaN
    history = read_history(open_checkpoint(broken))
    facts = history.facts
    # Steps 8 to 12 are NaN. The row of step 8 is half NaN: its gradient norm tells, its loss looks fine.
    assert facts.broken_from == 8 and facts.last_good == 6
    assert facts.zero_loss == 10 and facts.filtered
    assert facts.lr_at_break is not None and 0 < facts.lr_at_break < 1e-3


def test_settings_are_read_without_unpickling(broken: Path) -> None:
    settings = settings_from(open_checkpoint(broken))
    expected = {
        "learning_rate": 1e-3,
        "adam_beta2": 0.95,
        "warmup_steps": 3,
        "max_grad_norm": 0.5,
        "max_steps": 12,
        "seed": 7,
        "fp16": False,
        "bf16": False,
        "gradient_accumulation_steps": 1,
        "per_device_train_batch_size": 2,
        "lr_scheduler_type": "linear",
        "logging_nan_inf_filter": True,
    }
    assert {name: settings[name] for name in expected} == expected
    assert settings["lr_now"] == 0.0


def test_all_plain_fields_agree_with_the_real_object(broken: Path) -> None:
    real = torch.load(broken / "training_args.bin", weights_only=False)
    shown = open_checkpoint(broken).training_args
    assert shown is not None
    plain = {k: v for k, v in vars(real).items() if isinstance(v, str | int | float | bool | None) and not hasattr(v, "value")}
    assert len(plain) > 80
    assert {k: shown[k] for k in plain} == plain
    assert shown["optim"] == real.optim.value


def test_the_file_alone_is_a_log_too(broken: Path) -> None:
    history = read_history(broken / "trainer_state.json")
    assert history.kind == "hf-trainer-state" and history.facts.zero_loss == 10


@pytest.mark.parametrize(
    "content", ['{"log_history": 5}', '{"log_history": [', '{"log_history": [1, "x", {"step": "a"}, {"step": 1e400, "loss": 1}]}']
)
def test_damaged_logs_are_refused_or_empty(tmp_path: Path, content: str) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(content)
    try:
        assert not read_history(path)
    except UnreadableInput as refused:
        assert "trainer_state.json" in refused.message
