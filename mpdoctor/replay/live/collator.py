"""Batches as the Trainer's collator for the task makes them: tokenised, padded, with the labels that the head needs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.live.data import Data

_MAX_LENGTH = 512
"""Rows are cut here, or at the model's own limit."""
_TEXTS = ("text", "content", "sentence", "sentence1", "question", "prompt", "input")
_LABELS = ("labels", "label", "target", "score")
IGNORED = -100
"""Label that losses leave out."""


class Collator:
    """Makes batches for one model.

    Args:
        folder: where the tokenizer is.
        model: its class says what the labels are.
        settings: the run's settings.
    """

    def __init__(self, folder: Path, model: Any, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.config = model.config
        self.kind = type(model).__name__
        self.limit = min(_MAX_LENGTH, int(getattr(self.config, "max_position_embeddings", 0) or _MAX_LENGTH))
        self.arguments = frozenset(inspect.signature(model.forward).parameters)
        self._tokenizer: Any = None

    def __call__(self, rows: list[dict[str, Any]], data: Data, numbers: list[int]) -> dict[str, torch.Tensor]:
        """A batch of these rows. `numbers` are their places in the data, for messages."""
        if self._takes(rows[0]):
            return self._numbers(rows, data, numbers)
        encoded = [self._encode(row, data, n) for row, n in zip(rows, numbers, strict=True)]
        length = max((len(ids) for ids in encoded), default=1) or 1
        pad = self._pad_id()
        batch = {
            "input_ids": torch.tensor([ids + [pad] * (length - len(ids)) for ids in encoded]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (length - len(ids)) for ids in encoded]),
        }
        batch["labels"] = self._labels(rows, encoded, length, data, numbers, batch)
        return batch

    def made_up(self, size: int, length: int, number: int) -> dict[str, torch.Tensor]:
        """A batch of random tokens, the same for the same number."""
        generator = torch.Generator().manual_seed(1000 + number)
        text = getattr(self.config, "text_config", self.config)
        vocabulary = int(getattr(text, "vocab_size", 0) or 0)
        if vocabulary < 2:
            raise UnreadableInput(f"{self.folder}: {self.kind} takes no token ids, so batches cannot be made up", "Give a batch (--data batch.pt).")
        ids = torch.randint(1, vocabulary, (size, min(length, self.limit)), generator=generator)
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if "SequenceClassification" in self.kind:
            count = int(getattr(self.config, "num_labels", 2))
            if count == 1 or getattr(self.config, "problem_type", None) == "regression":
                batch["labels"] = torch.randn(size, generator=generator)
            else:
                batch["labels"] = torch.randint(0, count, (size,), generator=generator)
        elif "TokenClassification" in self.kind:
            batch["labels"] = torch.randint(0, int(getattr(self.config, "num_labels", 2)), ids.shape, generator=generator)
        else:
            batch["labels"] = ids.clone()
        return batch

    def ready(self, batch: Any) -> Any:
        """A batch that came ready made."""
        if not isinstance(batch, Mapping):
            raise UnreadableInput(f"{self.folder}: a .pt batch must be a dict of tensors, as the model takes them", None)
        return dict(batch)

    # -- parts

    def _takes(self, row: dict[str, Any]) -> bool:
        """Whether a row holds the model's own inputs as numbers (`past_values`, `pixel_values`, ...), not text or token lists of varying length."""
        if "input_ids" in row or any(isinstance(row.get(name), str) for name in _TEXTS):
            return False
        return any(name in self.arguments and isinstance(value, list) for name, value in row.items())

    def _numbers(self, rows: list[dict[str, Any]], data: Data, numbers: list[int]) -> dict[str, torch.Tensor]:
        batch = {}
        for name in rows[0]:
            if name not in self.arguments:
                continue
            values = [_with_nan(row.get(name)) for row in rows]
            try:
                tensor = torch.tensor(values)
            except (ValueError, TypeError) as error:
                raise UnreadableInput(f"{data.place(numbers[0])}: the field {name} is no array of equal size in every row: {error}", None) from None
            batch[name] = tensor.float() if tensor.is_floating_point() else tensor
        return batch

    def _encode(self, row: dict[str, Any], data: Data, number: int) -> list[int]:
        ids = row.get("input_ids")
        if isinstance(ids, list) and all(isinstance(i, int) for i in ids):
            return ids[: self.limit]
        text = next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), None)
        if text is None:
            known = ", ".join(_TEXTS[:4])
            raise UnreadableInput(
                f"{data.place(number)}: neither input_ids nor a text ({known}) in this row", f"Its fields are {', '.join(row) or 'none'}."
            )
        pair = next((row[name] for name in ("sentence2", "text_pair", "context") if isinstance(row.get(name), str)), None)
        return list(self._text_tokenizer()(text, pair, truncation=True, max_length=self.limit)["input_ids"])

    def _text_tokenizer(self) -> Any:
        if self._tokenizer is None:
            from transformers import AutoTokenizer

            try:
                self._tokenizer = AutoTokenizer.from_pretrained(str(self.folder), local_files_only=True)
            except Exception as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise UnreadableInput(
                    f"{self.folder}: no tokenizer can be loaded: {reason}", "Give tokenised data (input_ids), or add the tokenizer's files."
                ) from None
        return self._tokenizer

    def _pad_id(self) -> int:
        for holder in (self._tokenizer, self.config):
            value = getattr(holder, "pad_token_id", None)
            if isinstance(value, int) and value >= 0:
                return value
        return 0

    def _labels(
        self, rows: list[dict[str, Any]], encoded: list[list[int]], length: int, data: Data, numbers: list[int], batch: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        given = [next((row[name] for name in _LABELS if name in row), None) for row in rows]
        if "SequenceClassification" in self.kind:
            if all(g is None for g in given):
                raise UnreadableInput(f"{data.place(numbers[0])}: no label in this row", f"A {self.kind} needs one of {', '.join(_LABELS)}.")
            regression = getattr(self.config, "problem_type", None) == "regression" or int(getattr(self.config, "num_labels", 2)) == 1
            if regression:
                return torch.tensor([self._number(g, data, n) for g, n in zip(given, numbers, strict=True)])
            return torch.tensor([self._class_id(g, data, n) for g, n in zip(given, numbers, strict=True)])
        lists = [g for g in given if isinstance(g, list)]
        if len(lists) == len(rows):
            return torch.tensor([list(g)[:length] + [IGNORED] * (length - len(g)) for g in lists])
        ids = batch["input_ids"].clone()
        ids[batch["attention_mask"] == 0] = IGNORED
        if "MaskedLM" in self.kind:
            return self._masked(batch, ids)
        return ids

    def _number(self, label: Any, data: Data, number: int) -> float:
        try:
            return math.nan if label is None else float(label)
        except (TypeError, ValueError):
            raise UnreadableInput(f"{data.place(number)}: the label {label!r} is no number, which a regression needs", None) from None

    def _class_id(self, label: Any, data: Data, number: int) -> int:
        named = getattr(self.config, "label2id", None) or {}
        if isinstance(label, str) and label in named:
            return int(named[label])
        try:
            return int(label)
        except (TypeError, ValueError):
            raise UnreadableInput(
                f"{data.place(number)}: the label {label!r} is neither a number nor one of {', '.join(named) or 'the model labels'}", None
            ) from None

    def _masked(self, batch: dict[str, torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
        """Masked language modelling: 15 % of the tokens are to be guessed (the collator's default)."""
        generator = torch.Generator().manual_seed(int(labels.sum()) % (1 << 31))
        chosen = (torch.rand(labels.shape, generator=generator) < 0.15) & (labels != IGNORED)
        chosen[:, 1] |= labels[:, 1] != IGNORED if labels.shape[1] > 1 else False
        mask = getattr(self._text_tokenizer(), "mask_token_id", None)
        if mask is not None:
            batch["input_ids"][chosen] = mask
        return torch.where(chosen, labels, torch.full_like(labels, IGNORED))


def _with_nan(value: Any) -> Any:
    """A nested list with NaN where a number is missing (JSON's null)."""
    if isinstance(value, list):
        return [_with_nan(v) for v in value]
    return math.nan if value is None else value
