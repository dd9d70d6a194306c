"""Tiny models of every kind, trained by the real Trainer; the replay must take the steps that the run took."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import transformers
from accelerate.state import AcceleratorState
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers.trainer_callback import PrinterCallback

WORDS = ["the", "cat", "dog", "sat", "on", "mat", "ran", "slow", "red", "green", "house", "river", "stone", "bread", "warm", "hotel", "soup"]
SAVED, STEPS = 2, 5
"""The checkpoint is of step 2, and the run goes on to step 5."""


@pytest.fixture
def sentence() -> Callable[..., str]:
    """Makes sentences of three words and more, the same in every test."""
    pick = random.Random(0)
    return lambda longest=8: " ".join(pick.choice(WORDS) for _ in range(pick.randint(3, longest)))


@pytest.fixture
def tokenizer() -> Callable[[str], Any]:
    return words_as_tokens


def words_as_tokens(kind: str) -> Any:
    """Words as tokens. `bert` puts [CLS] and [SEP] around, `t5` ends with </s>, `plain` adds nothing."""
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "</s>"]
    words.train_from_iterator([" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=special))
    if kind == "bert":
        words.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    elif kind == "t5":
        words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 5)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", eos_token="</s>"
    )


@dataclass(frozen=True)
class Trained:
    """A checkpoint, the run's data, and what the run logged after it."""

    checkpoint: Path
    data: Path | None
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)

    def matches(self, report: Any) -> bool:
        """Whether the replay's losses are those that the run logged."""
        replayed = [step.loss for step in report.steps if step.source == "replay"]
        return len(replayed) == len(self.losses) == STEPS - SAVED and replayed == pytest.approx(self.losses, rel=1e-3)

    def replayed(self, **options: Any) -> Any:
        """The report of a replay of the steps that the run took after the checkpoint."""
        from mpdoctor.api import run_replay

        given = {"data": self.data, "steps": STEPS - SAVED, "experiments": "none"} | options
        return run_replay(self.checkpoint, **given)


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Trained]:
    """Trains a model for five steps on samples made of rows, which are written beside as the run's data."""

    def trained(
        model: Any, rows: list[dict[str, Any]] | None, samples: list[dict[str, Any]], collator: Any, processing: Any = None, **settings: Any
    ) -> Trained:
        AcceleratorState._reset_state(reset_partial_state=True)
        transformers.set_seed(0)
        transformers.utils.logging.set_verbosity_error()
        defaults = {
            "output_dir": str(tmp_path / "run"),
            "use_cpu": True,
            "max_steps": STEPS,
            "save_steps": SAVED,
            "logging_steps": 1,
            "report_to": [],
            "disable_tqdm": True,
            "per_device_train_batch_size": 4,
            "learning_rate": 1e-3,
        }
        arguments = transformers.TrainingArguments(**(defaults | settings))
        trainer = transformers.Trainer(model, arguments, train_dataset=samples, data_collator=collator, processing_class=processing)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        data = tmp_path / "data.jsonl" if rows is not None else None
        if data is not None and rows is not None:
            data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        logged = [entry for entry in trainer.state.log_history if "loss" in entry and entry["step"] > SAVED]
        losses, norms = [entry["loss"] for entry in logged], [float(entry["grad_norm"]) for entry in logged]
        return Trained(tmp_path / "run" / f"checkpoint-{SAVED}", data, losses, norms)

    return trained
