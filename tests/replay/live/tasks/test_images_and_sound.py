"""Images and sound without a recipe: read from files beside the data, by the folder's own processors."""

from __future__ import annotations

import json
import math
import struct
import wave
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

from mpdoctor.core.errors import UnreadableInput

pytestmark = pytest.mark.torch

ROWS = 16
CTC = {
    "vocab_size": 12,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_dim": (8, 8),
    "conv_kernel": (10, 3),
    "conv_stride": (20, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "ctc_loss_reduction": "mean",
    "mask_time_prob": 0.0,
}


def test_images_from_files(train: Any, tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    processor = hf.ViTImageProcessor(size={"height": 16, "width": 16})
    rows, samples = [], []
    for i in range(ROWS):
        image = images.effect_noise((20, 24), 40 + i).convert("RGB")
        image.save(tmp_path / f"{i}.png")
        rows.append({"image": f"{i}.png", "label": i % 3})
        samples.append({"pixel_values": processor(images=image, return_tensors="pt")["pixel_values"][0], "labels": i % 3})
    config = hf.ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8, num_labels=3)
    run = train(hf.ViTForImageClassification(config), rows, samples, hf.DefaultDataCollator(), processor, remove_unused_columns=False)
    assert run.matches(run.replayed())


def test_images_are_made_up_where_there_is_no_data(train: Any) -> None:
    samples = [{"pixel_values": torch.rand(3, 32, 32), "labels": i % 3} for i in range(ROWS)]
    config = hf.ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic", num_labels=3)
    run = train(hf.ResNetForImageClassification(config), None, samples, hf.DefaultDataCollator(), remove_unused_columns=False)
    report = run.replayed()
    assert len([step for step in report.steps if step.source == "replay"]) == 3
    assert any("dirty data stays untested" in note for note in report.notes)


@pytest.fixture
def speech(train: Any, tmp_path: Path) -> Any:
    """A run over WAV files, and a function that gives one row another transcript."""
    letters = {"<pad>": 0, "<unk>": 1, "|": 2, **{c: i + 3 for i, c in enumerate("abcdefghi")}}
    (tmp_path / "vocab.json").write_text(json.dumps(letters), encoding="utf-8")
    tokenizer = hf.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"), unk_token="<unk>", pad_token="<pad>", word_delimiter_token="|")
    extractor = hf.Wav2Vec2FeatureExtractor(do_normalize=True, return_attention_mask=False)
    rows, samples = [], []
    for i in range(ROWS):
        sound = [int(9000 * math.sin(0.01 * (i + 1) * k)) for k in range(4000 + 100 * i)]
        with wave.open(str(tmp_path / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, len(sound), "NONE", ""))
            file.writeframes(struct.pack(f"<{len(sound)}h", *sound))
        rows.append({"audio": f"{i}.wav", "text": "abc def"[: 3 + i % 4]})
        values = extractor([v / 32768 for v in sound], sampling_rate=16000)["input_values"][0]
        samples.append({"input_values": values, "labels": tokenizer(rows[-1]["text"])["input_ids"]})

    def collated(batch: list[dict[str, Any]]) -> dict[str, Any]:
        inputs = extractor.pad([{"input_values": row["input_values"]} for row in batch], return_tensors="pt")
        labels = tokenizer.pad([{"input_ids": row["labels"]} for row in batch], return_tensors="pt")
        return {**inputs, "labels": labels["input_ids"].masked_fill(labels["attention_mask"] != 1, -100)}

    model = hf.Wav2Vec2ForCTC(hf.Wav2Vec2Config(**CTC))
    both = hf.Wav2Vec2Processor(extractor, tokenizer)
    run = train(model, rows, samples, collated, both, remove_unused_columns=False, train_sampling_strategy="sequential")

    def other(number: int, **values: Any) -> Any:
        changed = [row | (values if i == number else {}) for i, row in enumerate(rows)]
        run.data.write_text("".join(json.dumps(row) + "\n" for row in changed), encoding="utf-8")
        return run

    return other


def test_sound_from_files(speech: Any) -> None:
    run = speech(0)
    assert run.matches(run.replayed())


def test_a_transcript_longer_than_its_sound_is_named_by_its_line(speech: Any) -> None:
    report = speech(9, text="abcdefghi" * 8).replayed(experiments="auto")  # step 2, the first one that is replayed, reads rows 8 to 11
    assert (report.outcome, report.headline.cause, report.headline.standing) == ("diagnosed", "dirty-data", "confirmed")
    message = next(f.message for f in report.findings if f.code == "RUN123")
    assert message.startswith("data.jsonl, line 10: 72 labels need 72 frames, and the sound has ")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"audio": "none.wav"}, r"data\.jsonl:9: names none\.wav, which is not there"),
        ({"audio": "data.jsonl"}, r"data\.jsonl:9: data\.jsonl cannot be read"),
        ({"audio": None}, r"data\.jsonl:9: no sound"),
        ({"text": None}, r"data\.jsonl:9: no transcript"),
    ],
)
def test_a_sound_that_cannot_be_read_is_named(values: dict[str, Any], words: str, speech: Any) -> None:
    with pytest.raises(UnreadableInput, match=words):
        speech(8, **values).replayed()
