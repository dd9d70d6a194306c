"""Tokenizer, image processor and feature extractor of a checkpoint folder, as its training used them. Nothing of the folder is run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from mpdoctor.core.errors import UnreadableInput
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.hf_model import quiet

_MAX_LENGTH = 512
"""Rows are cut here, or at the model's own limit."""


class Preprocessing:
    """What turns samples into a model's inputs.

    Args:
        folders: where tokenizer and processors may be, the best first (the checkpoint, then the base model of an adapter).
        model: its class, configuration and arguments say what it takes.
        settings: the run's settings.
        notes: what had to be assumed is added here, for the report.
    """

    def __init__(self, folders: Sequence[Path], model: Any, settings: Mapping[str, Any], notes: list[str]) -> None:
        self.folders = tuple(folders)
        self.settings = settings
        self.notes = notes
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.model = inner
        self.config = inner.config
        self.kind = type(inner).__name__
        self.arguments = frozenset(inspect.signature(inner.forward).parameters)

    # -- the model

    @property
    def text_config(self) -> Any:
        """Configuration of the part that reads text."""
        return getattr(self.config, "text_config", None) or self.config

    @cached_property
    def limit(self) -> int:
        """Longest row in tokens."""
        own = [int(getattr(c, "max_position_embeddings", 0) or 0) for c in (self.text_config, self.config)]
        given = [n for n in own if n > 0]
        # RoBERTa and its kin count positions from the padding id on.
        shift = int(getattr(self.text_config, "pad_token_id", 0) or 0) + 1 if "oberta" in self.kind or "MPNet" in self.kind else 0
        return max(1, min(_MAX_LENGTH, min(given) - shift if given else _MAX_LENGTH))

    @cached_property
    def embedded(self) -> int:
        """Rows of the token embedding; 0 where there is none."""
        try:
            return int(self.model.get_input_embeddings().weight.shape[0])
        except (AttributeError, NotImplementedError, TypeError):
            return int(getattr(self.text_config, "vocab_size", 0) or 0)

    @property
    def vocabulary(self) -> int:
        """Tokens that the model knows: rows of its embedding, or outputs of its head where it reads no tokens."""
        return self.embedded if self.model.main_input_name == "input_ids" else int(getattr(self.config, "vocab_size", 0) or 0)

    @property
    def labels(self) -> int:
        """Outputs of a classification head."""
        return int(getattr(self.config, "num_labels", 2))

    @property
    def label_ids(self) -> dict[str, int]:
        """Class numbers by label name."""
        return {str(k): int(v) for k, v in (getattr(self.config, "label2id", None) or {}).items()}

    def note(self, text: str) -> None:
        """Tell the report's reader what was assumed."""
        if text not in self.notes:
            self.notes.append(text)

    # -- text

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer as the training saved it. Raises UnreadableInput where there is none.

        `tokenizer.json` is taken at its word: AutoTokenizer rebuilds the tokenizers of some model families (Qwen2 among them)
        from the vocabulary alone, with splitting rules of its own.
        """
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        problems = []
        for folder in self.folders:
            saved = (folder / "tokenizer.json").is_file()
            loader: Any = PreTrainedTokenizerFast if saved else AutoTokenizer
            try:
                with quiet():
                    return loader.from_pretrained(str(folder), local_files_only=True)
            except Exception as error:  # transformers raises whatever the file leads it to
                problems.append(_first_line(error))
        raise UnreadableInput(
            f"{self.folders[0]}: no tokenizer can be loaded: {problems[0]}",
            "Add the tokenizer's files (tokenizer.json, or tokenizer_config.json and its vocabulary), or give tokenised data (input_ids).",
        )

    @property
    def has_tokenizer(self) -> bool:
        """Whether a tokenizer can be loaded."""
        try:
            return self.tokenizer is not None
        except UnreadableInput:
            return False

    def encoded(self, text: Any, pair: Any = None, **options: Any) -> dict[str, Any]:
        """A text (or a list of words) as the model's inputs, cut at its limit."""
        made = self.tokenizer(text, pair, truncation=True, max_length=self.limit, **options)
        return {name: value for name, value in made.items() if self.takes(name)}

    def takes(self, name: str) -> bool:
        """Whether the model was trained with this field of the tokenizer's output."""
        if name == "token_type_ids":
            # Many models accept it; only those with more than one type were trained with it.
            return name in self.arguments and int(getattr(self.config, "type_vocab_size", 0) or 0) > 1
        return name in self.arguments or name not in ("attention_mask", "special_tokens_mask")

    def tokenised(self, sample: Sample) -> dict[str, Any] | None:
        """The inputs of a row that comes tokenised, cut at the model's limit; None for a row without `input_ids`."""
        ids = sample.values.get("input_ids")
        if ids is None:
            return None
        if not isinstance(ids, list) or not ids or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise sample.refused("input_ids must be a list of token numbers")
        found: dict[str, Any] = {"input_ids": ids[: self.limit]}
        for name in ("attention_mask", "token_type_ids"):
            value = sample.values.get(name)
            if isinstance(value, list) and len(value) == len(ids) and self.takes(name):
                found[name] = value[: self.limit]
        found.setdefault("attention_mask", [1] * len(found["input_ids"]))
        return found

    def padded(self, rows: Sequence[Mapping[str, Any]], name: str, fill: int) -> torch.Tensor:
        """One field of all rows, padded to the longest on the tokenizer's side."""
        longest = max((len(row[name]) for row in rows), default=1) or 1
        left = self._loaded is not None and getattr(self._loaded, "padding_side", "right") == "left"
        filled = []
        for row in rows:
            values, gap = list(row[name]), [fill] * (longest - len(row[name]))
            filled.append(gap + values if left else values + gap)
        return torch.tensor(filled)

    def padded_text(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        """Token ids, mask and token types of all rows."""
        batch = {"input_ids": self.padded(rows, "input_ids", self.pad_id)}
        full = [{"attention_mask": row.get("attention_mask") or [1] * len(row["input_ids"])} for row in rows]
        batch["attention_mask"] = self.padded(full, "attention_mask", 0)
        if all("token_type_ids" in row for row in rows):
            batch["token_type_ids"] = self.padded(rows, "token_type_ids", 0)
        return batch

    @property
    def pad_id(self) -> int:
        """Token that fills rows up."""
        for holder in (self._loaded, self.text_config, self.config):
            value = getattr(holder, "pad_token_id", None)
            if isinstance(value, int) and value >= 0:
                return value
        return 0

    @property
    def _loaded(self) -> Any:
        """The tokenizer, where something has loaded it."""
        return self.__dict__.get("tokenizer")

    # -- images and sound

    @cached_property
    def image_processor(self) -> Any:
        """The folder's image processor, or None."""
        from transformers import AutoImageProcessor

        return self._first(AutoImageProcessor)

    @cached_property
    def feature_extractor(self) -> Any:
        """The folder's feature extractor for sound, or None."""
        from transformers import AutoFeatureExtractor

        return self._first(AutoFeatureExtractor)

    def _first(self, loader: Any) -> Any:
        for folder in self.folders:
            if not any((folder / name).is_file() for name in ("preprocessor_config.json", "processor_config.json")):
                continue
            try:
                with quiet():
                    return loader.from_pretrained(str(folder), local_files_only=True)
            except Exception as error:  # transformers raises whatever the file leads it to
                self.note(f"{folder / 'preprocessor_config.json'}: cannot be used ({_first_line(error)})")
        return None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
