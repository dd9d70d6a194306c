"""Causal language models: the text is its own label.

Rows: `text`; `messages` (by the tokenizer's chat template); `prompt` and `completion`, of which the completion alone is learnt; or `input_ids`
with or without `labels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mpdoctor.core.errors import NothingToJudge
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import IGNORED, Batch, Features, Task

_COMPLETIONS = ("completion", "response", "chosen")
_LENGTH = 32
"""Tokens of a row that is made up."""


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Token ids and labels of one row."""
    row = preprocessing.tokenised(sample)
    if row is not None:
        labels = sample.values.get("labels")
        if isinstance(labels, list):
            if len(labels) != len(sample.values["input_ids"]):
                raise sample.refused(f"{len(labels)} labels for {len(sample.values['input_ids'])} tokens")
            row["labels"] = labels[: preprocessing.limit]
        return row
    messages = sample.first("messages", "conversations")
    if isinstance(messages, list):
        return _chat(preprocessing, sample, messages)
    prompt, completion = sample.first("prompt", "instruction"), sample.first(*_COMPLETIONS)
    if isinstance(prompt, str) and isinstance(completion, str):
        return _completion(preprocessing, prompt, completion)
    return preprocessing.encoded(sample.text())


def _chat(preprocessing: Preprocessing, sample: Sample, messages: list[Any]) -> Features:
    if not getattr(preprocessing.tokenizer, "chat_template", None):
        raise sample.refused("a conversation, and the tokenizer has no chat template", "Give the text as the run made it, or tokenised rows.")
    try:
        text = preprocessing.tokenizer.apply_chat_template(messages, tokenize=False)
    except Exception as error:  # the template is the folder's own; it may raise anything
        raise sample.refused(f"the chat template cannot render these messages: {error}") from None
    return preprocessing.encoded(text, add_special_tokens=False)


def _completion(preprocessing: Preprocessing, prompt: str, completion: str) -> Features:
    row = preprocessing.encoded(prompt + completion)
    known = len(preprocessing.encoded(prompt)["input_ids"])
    end = getattr(preprocessing.tokenizer, "eos_token_id", None)
    if isinstance(end, int) and row["input_ids"][-1:] != [end] and len(row["input_ids"]) < preprocessing.limit:
        row = {name: [*value, end if name == "input_ids" else value[-1]] for name, value in row.items() if value}
    row["labels"] = [IGNORED if i < known else token for i, token in enumerate(row["input_ids"])]
    return row


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Padded rows; labels are the tokens themselves where a row has none, and padding is left out of the loss."""
    batch = preprocessing.padded_text(rows)
    if all("labels" in row for row in rows):
        return batch | {"labels": preprocessing.padded(rows, "labels", IGNORED)}
    return batch | {"labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORED)}


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random tokens."""
    batch = random_text(preprocessing, size, generator)
    return batch | {"labels": batch["input_ids"].clone()}


def random_text(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random tokens with their mask. Raises NothingToJudge for a model that reads no tokens."""
    if preprocessing.embedded < 2:
        raise NothingToJudge(
            f"{preprocessing.kind} takes no token ids, so batches cannot be made up", "a batch (--data batch.pt) would let mpdoctor replay it"
        )
    ids = torch.randint(1, preprocessing.embedded, (size, min(_LENGTH, preprocessing.limit)), generator=generator)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


TASK = Task(
    name="causal language modelling", heads=("ForCausalLM", "LMHeadModel", "DoubleHeadsModel", "ForConditionalGeneration"),
    features=features, collate=collate, made_up=made_up, tokens=("input_ids", "labels"),
)  # fmt: skip
