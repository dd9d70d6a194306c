"""Text models without a recipe: the replay's losses are those that the run logged, so batches, labels, weights and optimizer are the run's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import save_file

from mpdoctor.api import run_replay
from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.checkpoints import open_checkpoint
from mpdoctor.replay.live.hf_checkpoint import HfCheckpointSource

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
T5 = {"vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0, "eos_token_id": 5}


def text_and(label: Any, sentence: Any) -> list[dict[str, Any]]:
    return [{"text": sentence(), "label": label(i)} for i in range(ROWS)]


def plain(tokenizer: Any, text: str) -> dict[str, Any]:
    return {"input_ids": tokenizer(text)["input_ids"], "attention_mask": tokenizer(text)["attention_mask"]}


def found(report: Any, code: str) -> Any:
    return next((f for f in report.findings if f.code == code), None)


def test_causal_language_model(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("plain"), [{"text": sentence(20)} for _ in range(ROWS)]
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA))
    samples = [plain(words, row["text"]) for row in rows]
    run = train(model, rows, samples, hf.DataCollatorForLanguageModeling(words, mlm=False), words, weight_decay=0.1)
    assert run.matches(run.replayed())


def test_sequence_to_sequence_with_label_smoothing(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("t5"), [{"source": sentence(), "target": sentence()} for _ in range(ROWS)]
    model = hf.T5ForConditionalGeneration(hf.T5Config(**T5))
    samples = [{**plain(words, row["source"]), "labels": words(row["target"])["input_ids"]} for row in rows]
    run = train(model, rows, samples, hf.DataCollatorForSeq2Seq(words, model=model), words, label_smoothing_factor=0.1)
    assert run.matches(run.replayed())


def test_classes_by_name(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, names = tokenizer("bert"), {"bad": 0, "fair": 1, "good": 2}
    rows = text_and(lambda i: list(names)[i % 3], sentence)
    config = hf.BertConfig(**BERT, num_labels=3, label2id=names, id2label={v: k for k, v in names.items()})
    samples = [{**words(row["text"]), "labels": names[row["label"]]} for row in rows]
    run = train(hf.BertForSequenceClassification(config), rows, samples, hf.DataCollatorWithPadding(words), words)
    assert run.matches(run.replayed())


def test_several_classes_at_once(train: Any, tokenizer: Any, sentence: Any) -> None:
    words = tokenizer("bert")
    rows = text_and(lambda i: [i % 2, 1, i % 3 // 2], sentence)
    config = hf.BertConfig(**BERT, num_labels=3, problem_type="multi_label_classification")
    samples = [{**words(row["text"]), "labels": [float(v) for v in row["label"]]} for row in rows]
    run = train(hf.BertForSequenceClassification(config), rows, samples, hf.DataCollatorWithPadding(words), words)
    assert run.matches(run.replayed())


def test_a_number(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("bert"), text_and(lambda i: i / 10, sentence)
    samples = [{**words(row["text"]), "labels": row["label"]} for row in rows]
    run = train(hf.BertForSequenceClassification(hf.BertConfig(**BERT, num_labels=1)), rows, samples, hf.DataCollatorWithPadding(words), words)
    assert run.matches(run.replayed())


def test_a_class_for_every_word(train: Any, tokenizer: Any, sentence: Any) -> None:
    words = tokenizer("bert")
    rows = [{"tokens": sentence().split()} for _ in range(ROWS)]
    rows = [row | {"ner_tags": [len(word) % 3 for word in row["tokens"]]} for row in rows]
    samples = []
    for row in rows:
        encoded = words(row["tokens"], is_split_into_words=True)
        samples.append({**encoded, "labels": [-100 if w is None else row["ner_tags"][w] for w in encoded.word_ids()]})
    model = hf.BertForTokenClassification(hf.BertConfig(**BERT, num_labels=3))
    run = train(model, rows, samples, hf.DataCollatorForTokenClassification(words), words)
    assert run.matches(run.replayed())


def test_the_place_of_an_answer(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows, samples = tokenizer("bert"), [], []
    for _ in range(ROWS):
        question, context = sentence(5), sentence(12)
        answer = context.split()[1]
        rows.append({"question": question, "context": context, "answers": {"text": [answer], "answer_start": [context.index(answer)]}})
        encoded = words(question, context)
        place = encoded.char_to_token(context.index(answer), sequence_index=1)
        samples.append({**encoded, "start_positions": place, "end_positions": place})
    run = train(hf.BertForQuestionAnswering(hf.BertConfig(**BERT)), rows, samples, hf.DataCollatorWithPadding(words), words)
    assert run.matches(run.replayed())


def test_masked_tokens_are_drawn_anew_and_it_is_said(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("bert"), [{"text": sentence(20)} for _ in range(ROWS)]
    samples = [plain(words, row["text"]) for row in rows]
    run = train(hf.BertForMaskedLM(hf.BertConfig(**BERT)), rows, samples, hf.DataCollatorForLanguageModeling(words), words)
    first, second = run.replayed(), run.replayed()
    assert first.outcome == "healthy"
    assert [s.loss for s in first.steps] == [s.loss for s in second.steps]
    assert any("masked is drawn anew" in note for note in first.notes)


@pytest.fixture
def classifier(train: Any, tokenizer: Any, sentence: Any) -> Any:
    """A run over rows with labels 0 to 2, and a function that writes other rows."""
    words = tokenizer("bert")
    rows = text_and(lambda i: i % 3, sentence)
    samples = [{**words(row["text"]), "labels": row["label"]} for row in rows]
    config = hf.BertConfig(**BERT, num_labels=3)
    run = train(
        hf.BertForSequenceClassification(config), rows, samples, hf.DataCollatorWithPadding(words), words, train_sampling_strategy="sequential"
    )

    def other(number: int, **values: Any) -> Any:
        changed = [row | (values if i == number else {}) for i, row in enumerate(rows)]
        run.data.write_text("".join(json.dumps(row) + "\n" for row in changed), encoding="utf-8")
        return run

    return other


def test_a_label_outside_the_head_is_named_by_its_line(classifier: Any) -> None:
    report = classifier(9, label=7).replayed(experiments="auto")  # step 2, the first one that is replayed, reads rows 8 to 11
    assert (report.outcome, report.headline.cause, report.headline.standing) == ("diagnosed", "dirty-data", "confirmed")
    assert "line 10: label 7, and the head has 3 outputs (0 to 2), which step 2 reads" in found(report, "RUN121").message


def test_a_label_outside_the_head_that_a_later_step_reads(classifier: Any) -> None:
    report = classifier(22, label=-1).replayed()
    assert (report.outcome, report.headline.cause) == ("diagnosed", "dirty-data")
    assert "line 23: label -1" in report.headline.text
    assert "which step 5 reads" in report.headline.text


def test_the_label_that_losses_leave_out_is_no_fault(classifier: Any) -> None:
    assert classifier(9, label=-100).replayed().findings == ()


def test_a_token_outside_the_vocabulary_is_named_by_its_line(classifier: Any) -> None:
    report = classifier(9, input_ids=[2, 5, 40, 3]).replayed(experiments="auto")
    assert report.headline.cause == "dirty-data"
    assert "line 10: token 40, and the model's vocabulary has 40 tokens" in found(report, "RUN122").message


def test_rows_of_like_length_come_together_and_it_is_said(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("plain"), [{"text": sentence(30)} for _ in range(ROWS)]
    samples = [plain(words, row["text"]) for row in rows]
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA))
    collator = hf.DataCollatorForLanguageModeling(words, mlm=False)
    run = train(model, rows, samples, collator, words, train_sampling_strategy="group_by_length")
    assert any("rows by length" in note for note in run.replayed().notes)


def test_accumulated_batches_weigh_by_their_tokens(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("plain"), [{"text": sentence(30)} for _ in range(ROWS)]
    samples = [plain(words, row["text"]) for row in rows]
    model, collator = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)), hf.DataCollatorForLanguageModeling(words, mlm=False)
    run = train(model, rows, samples, collator, words, gradient_accumulation_steps=2, per_device_train_batch_size=2, learning_rate=0.01)
    report = run.replayed()
    norms = [step.grad_norm for step in report.steps if step.source == "replay"]
    assert norms[1::2] == pytest.approx(run.norms, rel=1e-3)
    assert "a step of the run is 2 batches; the replay counts each batch as a step" in report.notes


def test_accumulated_losses_of_a_classifier_add_up_as_in_the_run(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("bert"), text_and(lambda i: i / 10, sentence)
    samples = [{**words(row["text"]), "labels": row["label"]} for row in rows]
    model = hf.BertForSequenceClassification(hf.BertConfig(**BERT, num_labels=1))
    run = train(model, rows, samples, hf.DataCollatorWithPadding(words), words, gradient_accumulation_steps=2, per_device_train_batch_size=2)
    replayed = [step for step in run.replayed().steps if step.source == "replay"]
    assert [step.grad_norm for step in replayed][1::2] == pytest.approx(run.norms, rel=1e-3)
    losses = [step.loss for step in replayed]  # of each batch by itself; the run logged their sum
    assert [a + b for a, b in zip(losses[::2], losses[1::2], strict=True)] == pytest.approx(run.losses, rel=1e-3)


@pytest.mark.parametrize("frozen", [["model.embed_tokens."], ["model.embed_tokens.", "model.layers.0."]])
def test_frozen_parameters_stay_frozen(frozen: list[str], train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("plain"), [{"text": sentence(20)} for _ in range(ROWS)]
    samples = [plain(words, row["text"]) for row in rows]
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(tuple(frozen)))
    collator = hf.DataCollatorForLanguageModeling(words, mlm=False)
    run = train(model, rows, samples, collator, words, weight_decay=0.1, learning_rate=0.01)
    report = run.replayed()
    assert run.matches(report)
    assert any("frozen, as the optimizer's state shows (first: model.embed_tokens.weight)" in note for note in report.notes)
    assert any("the state leaves open" in note for note in report.notes) == (len(frozen) > 1)


def test_a_tokenizer_is_the_one_that_was_saved(train: Any, tokenizer: Any, sentence: Any) -> None:
    words = tokenizer("plain")
    rows = [{"text": sentence(20)} for _ in range(ROWS)]
    samples = [plain(words, row["text"]) for row in rows]
    model = hf.Qwen2ForCausalLM(hf.Qwen2Config(**LLAMA, num_key_value_heads=2))
    run = train(model, rows, samples, hf.DataCollatorForLanguageModeling(words, mlm=False), words)
    assert run.matches(run.replayed())


def test_activations_beyond_fp16_are_counted_in_the_stored_precision(train: Any, tokenizer: Any, sentence: Any) -> None:
    words, rows = tokenizer("plain"), [{"text": sentence(20)} for _ in range(ROWS)]
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)).bfloat16()
    for name in ("gate_proj", "up_proj"):
        getattr(model.model.layers[1].mlp, name).weight.data.mul_(3000)
    samples = [plain(words, row["text"]) for row in rows]
    run = train(model, rows, samples, hf.DataCollatorForLanguageModeling(words, mlm=False), words, bf16=True)
    assert "activation_ranges" not in run.replayed().measurements  # a run in bf16 has nothing to fear
    report = run.replayed(precision="fp16", experiments="auto")
    assert (report.headline.cause, report.headline.standing) == ("fp16-range", "confirmed")
    assert "model.layers.1.mlp" in found(report, "RUN124").message
    ranges = {entry["module"]: entry for entry in report.measurements["activation_ranges"]}
    assert ranges["model.layers.1.mlp.down_proj"]["infinite"] > 0
    assert ranges["model.layers.0.mlp.down_proj"]["infinite"] == 0
    assert "by one forward pass in bfloat16" in report.measurements["activations_in_fp16"]


@pytest.mark.parametrize("first_token", [False, True])
def test_pairs_of_texts_for_an_embedding_model(first_token: bool, tokenizer: Any, sentence: Any, tmp_path: Path) -> None:
    folder, words, model = tmp_path / "embedding", tokenizer("bert"), hf.BertModel(hf.BertConfig(**BERT)).eval()
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": first_token}), encoding="utf-8")
    rows = [{"anchor": sentence(), "positive": sentence()} for _ in range(4)]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    source = HfCheckpointSource(open_checkpoint(folder), data=data, steps=1, precision="fp32")

    def embedded(name: str, row: dict[str, str]) -> torch.Tensor:
        states = model(**words(row[name], return_tensors="pt")).last_hidden_state[0]
        return torch.nn.functional.normalize(states[0] if first_token else states.mean(0), dim=0)

    order = source._rows[0]
    one, other = (torch.stack([embedded(name, rows[i]) for i in order]) for name in ("anchor", "positive"))
    expected = torch.nn.functional.cross_entropy(20 * one @ other.T, torch.arange(4))
    session = source.open()
    session.model.eval()
    assert float(session.loss(session.model, session.batches[0]).detach()) == pytest.approx(float(expected.detach()), rel=1e-4)
    report = run_replay(folder, data=data, steps=2, experiments="none")
    assert report.outcome == "healthy"  # the pooler, which the loss does not read, is no finding
    assert any("an embedding model has no loss of its own" in note for note in report.notes)


def test_a_model_of_unknown_purpose_is_judged_by_its_files(tmp_path: Path) -> None:
    hf.BertModel(hf.BertConfig(**BERT)).save_pretrained(tmp_path)
    report = run_replay(tmp_path)
    why = next(skipped.why for skipped in report.skipped if skipped.what == "replay of the next steps")
    assert why.startswith("what a BertModel is trained on is not known, so batches cannot be made up; a batch (--data batch.pt)")
    assert "stored_weights" in report.measurements


# -- rows that cannot be used, and code that is not run


def test_a_row_without_its_part_is_named(classifier: Any, tmp_path: Path) -> None:
    run = classifier(0)
    run.data.write_text('{"text": "the cat"}\n', encoding="utf-8")
    with pytest.raises(UnreadableInput, match=r"data\.jsonl:1: no label in this row"):
        run.replayed()


OWN_CODE = """
import os, pathlib, torch
from transformers import PreTrainedModel, PretrainedConfig
from transformers.modeling_outputs import CausalLMOutput

pathlib.Path(os.environ["RAN"]).touch()

class MineConfig(PretrainedConfig):
    model_type = "mine"

class MineForCausalLM(PreTrainedModel):
    config_class = MineConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(8, 4)
        self.head = torch.nn.Linear(4, 8, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.embed

    def forward(self, input_ids=None, attention_mask=None, labels=None):
        logits = self.head(self.embed(input_ids))
        return CausalLMOutput(loss=torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits=logits)
"""


@pytest.mark.parametrize("trusted", [False, True])
def test_code_of_the_folder_runs_only_when_it_is_trusted(trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ran = tmp_path / "mine", tmp_path / "ran"
    folder.mkdir()
    (folder / "modeling_mine.py").write_text(OWN_CODE, encoding="utf-8")
    auto_map = {"AutoConfig": "modeling_mine.MineConfig", "AutoModelForCausalLM": "modeling_mine.MineForCausalLM"}
    config = {"architectures": ["MineForCausalLM"], "auto_map": auto_map, "model_type": "mine"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = {"embed.weight": torch.zeros(8, 4), "head.weight": torch.zeros(8, 4)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("RAN", str(ran))
    report = run_replay(folder, steps=1, trust_remote_code=trusted)
    assert ran.exists() is trusted
    assert bool([step for step in report.steps if step.source == "replay"]) is trusted
    assert any("--trust-remote-code" in skipped.why for skipped in report.skipped) is not trusted
