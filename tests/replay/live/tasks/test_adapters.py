"""PEFT adapters: base model and adapter are put together as the run had them, and the optimizer's state is that of the trained parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers as hf
from peft import LoraConfig, get_peft_model

from mpdoctor.api import run_replay
from mpdoctor.core.errors import UnreadableInput, UsageError

pytestmark = pytest.mark.torch

ROWS = 24
BERT = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}
LLAMA = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}


@pytest.fixture
def adapted(train: Any, tokenizer: Any, sentence: Any, tmp_path: Path) -> Any:
    """A LoRA run on a bf16 base model in the folder `base`."""
    words, rows = tokenizer("plain"), [{"text": sentence(20)} for _ in range(ROWS)]
    hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)).bfloat16().save_pretrained(tmp_path / "base")
    base = hf.AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    model = get_peft_model(base, LoraConfig(r=2, task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"]))
    samples = [{name: words(row["text"])[name] for name in ("input_ids", "attention_mask")} for row in rows]
    return train(model, rows, samples, hf.DataCollatorForLanguageModeling(words, mlm=False), words, learning_rate=0.1)


def elsewhere(run: Any, named: str = "org/base") -> Any:
    """The run with another base model in its configuration."""
    file = run.checkpoint / "adapter_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(config | {"base_model_name_or_path": named}), encoding="utf-8")
    return run


def test_an_adapter_on_its_base_model(adapted: Any) -> None:
    report = adapted.replayed()
    assert adapted.matches(report)
    assert any("the base model is loaded as it is stored (bfloat16)" in note for note in report.notes)


def test_an_adapter_of_a_classifier_brings_its_head(train: Any, tokenizer: Any, sentence: Any, tmp_path: Path) -> None:
    words, rows = tokenizer("bert"), [{"text": sentence(), "label": i % 3} for i in range(ROWS)]
    hf.BertModel(hf.BertConfig(**BERT)).save_pretrained(tmp_path / "base")
    base = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    model = get_peft_model(base, LoraConfig(r=2, task_type="SEQ_CLS", target_modules=["query", "value"]))
    samples = [{**words(row["text"]), "labels": row["label"]} for row in rows]
    run = train(model, rows, samples, hf.DataCollatorWithPadding(words), words, learning_rate=0.1)
    assert run.matches(run.replayed())


def test_a_base_model_that_is_not_here_is_asked_for(adapted: Any) -> None:
    report = elsewhere(adapted).replayed()
    why = next(skipped.why for skipped in report.skipped if skipped.what == "replay of the next steps")
    assert why == "the adapter's base model org/base is not a local folder; --base-model FOLDER would let mpdoctor replay the next steps"


def test_the_base_model_that_the_user_names(adapted: Any, tmp_path: Path) -> None:
    report = elsewhere(adapted).replayed(base_model=tmp_path / "base")
    assert adapted.matches(report)


def test_another_base_model_is_refused(adapted: Any, tmp_path: Path) -> None:
    hf.BertModel(hf.BertConfig(**BERT)).save_pretrained(tmp_path / "bert")
    with pytest.raises(UnreadableInput, match="the adapter does not fit its base model"):
        adapted.replayed(base_model=tmp_path / "bert")


def test_a_base_model_of_another_width_is_refused(adapted: Any, tmp_path: Path) -> None:
    hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA | {"hidden_size": 32})).save_pretrained(tmp_path / "wide")
    with pytest.raises(UnreadableInput, match="the adapter does not fit its base model"):
        adapted.replayed(base_model=tmp_path / "wide")


def test_a_base_model_for_a_checkpoint_that_is_no_adapter(tmp_path: Path) -> None:
    hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)).save_pretrained(tmp_path / "full")
    with pytest.raises(UsageError, match="--base-model is for adapters"):
        run_replay(tmp_path / "full", base_model=tmp_path)
