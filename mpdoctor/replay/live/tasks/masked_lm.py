"""Masked language models: 15 % of the tokens are to be guessed (80 % of them masked, 10 % replaced, 10 % kept)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch

from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import IGNORED, Batch, Features, Task
from mpdoctor.replay.live.tasks.causal_lm import random_text

_SHARE = 0.15
"""The collator's default."""


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Token ids of one row, with its labels where it comes masked."""
    row = preprocessing.tokenised(sample)
    if row is None:
        return preprocessing.encoded(sample.text())
    labels = sample.values.get("labels")
    return row | {"labels": labels[: preprocessing.limit]} if isinstance(labels, list) else row


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Masked rows. The choice of tokens is drawn by a seed of the rows' own content: the run drew it from a state that no checkpoint keeps."""
    if all("labels" in row for row in rows):
        return preprocessing.padded_text(rows) | {"labels": preprocessing.padded(rows, "labels", IGNORED)}
    if not preprocessing.has_tokenizer or preprocessing.tokenizer.mask_token is None:
        preprocessing.note("no tokenizer with a mask token was found: the tokens to be guessed stay visible")
        return _chosen(preprocessing.padded_text(rows), torch.Generator().manual_seed(_seed(rows)))
    from transformers import DataCollatorForLanguageModeling

    preprocessing.note("which tokens are masked is drawn anew: the run's own choice is in no checkpoint")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_seed(rows))
        made = DataCollatorForLanguageModeling(preprocessing.tokenizer, mlm=True, mlm_probability=_SHARE)([dict(row) for row in rows])
    return dict(made)


def _seed(rows: Sequence[Features]) -> int:
    return zlib.crc32(repr([row["input_ids"] for row in rows]).encode())


def _chosen(batch: Batch, generator: torch.Generator) -> Batch:
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORED)
    chosen = (torch.rand(labels.shape, generator=generator) < _SHARE) & (labels != IGNORED)
    chosen[:, 0] |= ~chosen.any(1)
    return batch | {"labels": labels.masked_fill(~chosen, IGNORED)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random tokens, some of which are to be guessed."""
    return _chosen(random_text(preprocessing, size, generator), generator)


TASK = Task(
    name="masked language modelling", heads=("ForMaskedLM",), features=features, collate=collate, made_up=made_up, tokens=("input_ids", "labels")
)
