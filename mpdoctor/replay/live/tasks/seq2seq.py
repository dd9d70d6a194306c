"""Encoder-decoder models for text: a source and its target.

Rows: `source`/`text`/`input`/`document`/... and `target`/`summary`/`labels`/...; `translation` with two languages; or `input_ids` and `labels`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mpdoctor.replay.live.data import TEXTS, Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import IGNORED, Batch, Features, Task
from mpdoctor.replay.live.tasks.causal_lm import random_text

_SOURCES = ("source", "src", "document", "article", "dialogue", "instruction", *TEXTS)
TARGETS = ("target", "tgt", "summary", "highlights", "output", "answer", "completion", "response", "labels", "label", "translated")


def fits(preprocessing: Preprocessing) -> bool:
    """Whether an encoder reads token ids."""
    return bool(getattr(preprocessing.config, "is_encoder_decoder", False)) and preprocessing.model.main_input_name == "input_ids"


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Tokens of the source and labels of the target."""
    row = preprocessing.tokenised(sample)
    if row is not None:
        labels = sample.values.get("labels")
        if not isinstance(labels, list):
            raise sample.refused("input_ids without labels", "An encoder-decoder model needs the target's tokens as labels.")
        return row | {"labels": labels[: preprocessing.limit]}
    translation = sample.values.get("translation")
    if isinstance(translation, dict) and len(translation) == 2:
        source, target = translation.values()
        preprocessing.note(f"translated from {next(iter(translation))}, the first language of each row")
    else:
        source, target = sample.first(*_SOURCES), sample.first(*TARGETS)
    if not isinstance(source, str):
        raise sample.refused(f"no source text ({', '.join(_SOURCES[:6])}, ...)")
    if not isinstance(target, str):
        raise sample.refused(f"no target text ({', '.join(TARGETS[:6])}, ...)")
    labels = preprocessing.tokenizer(text_target=target, truncation=True, max_length=preprocessing.limit)["input_ids"]
    return preprocessing.encoded(source) | {"labels": labels}


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded rows; labels of the padding are left out of the loss, and the decoder reads the labels moved by one."""
    if preprocessing.has_tokenizer:
        from transformers import DataCollatorForSeq2Seq

        batch = dict(DataCollatorForSeq2Seq(preprocessing.tokenizer, model=preprocessing.model)([dict(row) for row in rows]))
    else:
        batch = preprocessing.padded_text(rows) | {"labels": preprocessing.padded(rows, "labels", IGNORED)}
    return batch


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random sources and targets."""
    source, target = random_text(preprocessing, size, generator), random_text(preprocessing, size, generator)
    return source | {"labels": target["input_ids"]}


TASK = Task(
    name="sequence to sequence", heads=("ForConditionalGeneration", "LMHeadModel", "MTModel"), fits=fits,
    features=features, collate=collate, made_up=made_up, tokens=("input_ids", "labels"),
)  # fmt: skip
