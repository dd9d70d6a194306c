"""A class for every word (named entities, parts of speech).

Rows: `tokens` and `ner_tags`/`labels`/`tags`, one label for each word; or `input_ids` and `labels`. The first piece of a word carries its
label, the others are left out of the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from mpdoctor.replay.data_evidence import FaultKind
from mpdoctor.replay.live.class_labels import outside
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import IGNORED, Batch, Features, Task
from mpdoctor.replay.live.tasks.causal_lm import random_text

_WORDS = ("tokens", "words")
_TAGS = ("ner_tags", "labels", "tags", "pos_tags", "chunk_tags", "label")


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Token ids, and a label for the first piece of every word."""
    labels = _labels(preprocessing, sample)
    row = preprocessing.tokenised(sample)
    if row is not None:
        if len(labels) != len(sample.values["input_ids"]):
            raise sample.refused(f"{len(labels)} labels for {len(sample.values['input_ids'])} tokens")
        return row | {"labels": labels[: preprocessing.limit]}
    words = sample.first(*_WORDS)
    if not isinstance(words, list) or not all(isinstance(w, str) for w in words):
        raise sample.refused("no list of words", f"Token classification reads {' or '.join(_WORDS)} with one label each, or input_ids.")
    if len(words) != len(labels):
        raise sample.refused(f"{len(labels)} labels for {len(words)} words")
    tokenizer = preprocessing.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise sample.refused("this tokenizer cannot tell which word a token comes from", "Give tokenised rows (input_ids and labels).")
    encoded = tokenizer(words, is_split_into_words=True, truncation=True, max_length=preprocessing.limit)
    places = encoded.word_ids()
    first = [place is not None and place not in places[:i] for i, place in enumerate(places)]
    aligned = [labels[place] if is_first and place is not None else IGNORED for place, is_first in zip(places, first, strict=True)]
    return {name: value for name, value in encoded.items() if preprocessing.takes(name)} | {"labels": aligned}


def _labels(preprocessing: Preprocessing, sample: Sample) -> list[int]:
    given = sample.first(*_TAGS)
    if not isinstance(given, list):
        raise sample.refused("no list of labels", f"A {preprocessing.kind} needs one of {', '.join(_TAGS[:4])}.")
    named = preprocessing.label_ids
    try:
        return [named[v] if isinstance(v, str) and v in named else int(v) for v in given]
    except (TypeError, ValueError):
        raise sample.refused(f"the labels {_short(given)} are neither numbers nor the model's labels ({', '.join(list(named)[:10])})") from None


def _short(values: list[Any]) -> str:
    return f"{values[:5]!r}{'...' if len(values) > 5 else ''}"


def faults(preprocessing: Preprocessing, sample: Sample) -> Iterator[tuple[FaultKind, str]]:
    """The first label that the head has no output for."""
    return outside(_labels(preprocessing, sample), preprocessing)


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded rows; padding is left out of the loss."""
    return preprocessing.padded_text(rows) | {"labels": preprocessing.padded(rows, "labels", IGNORED)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random tokens and labels."""
    batch = random_text(preprocessing, size, generator)
    return batch | {"labels": torch.randint(0, preprocessing.labels, batch["input_ids"].shape, generator=generator)}


TASK = Task(name="token classification", heads=("ForTokenClassification",), features=features, collate=collate, made_up=made_up, faults=faults)
