"""A label for a text, or for a pair of texts: one class, several at once, or a number."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mpdoctor.replay.live.class_labels import class_faults, label_of, label_tensor, made_up_labels
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import Batch, Features, Task
from mpdoctor.replay.live.tasks.causal_lm import random_text

_PAIRS = ("sentence2", "text_pair", "hypothesis", "question2", "context", "passage", "document")
_FIRST = ("premise", "question1", "query")


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Token ids and the label."""
    row = preprocessing.tokenised(sample)
    if row is None:
        first = sample.first(*_FIRST)
        text = first if isinstance(first, str) else sample.text()
        pair = sample.first(*_PAIRS)
        row = preprocessing.encoded(text, pair if isinstance(pair, str) and pair != text else None)
    return row | {"labels": label_of(preprocessing, sample)}


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded rows with their labels."""
    return preprocessing.padded_text(rows) | {"labels": label_tensor(preprocessing, rows)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random tokens and labels."""
    return random_text(preprocessing, size, generator) | {"labels": made_up_labels(preprocessing, size, generator)}


TASK = Task(
    name="sequence classification", heads=("ForSequenceClassification",), features=features, collate=collate, made_up=made_up, faults=class_faults
)
