"""Text embeddings (sentence-transformers): texts that belong together are to lie closer than the others of the batch.

The model has no head and no loss of its own. The loss here is in-batch softmax over cosine similarities times 20, over mean-pooled tokens (or the
first one, as `1_Pooling/config.json` says): sentence-transformers' MultipleNegativesRankingLoss. A run with another loss needs a recipe.
Rows: two texts (`anchor` and `positive`, `query` and `answer`, `sentence1` and `sentence2`, ...).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch

from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import Batch, Features, Task
from mpdoctor.replay.live.tasks.causal_lm import random_text

_SCALE = 20.0
"""sentence-transformers' default."""
_PAIRS = (
    ("anchor", "positive"),
    ("query", "positive"),
    ("query", "answer"),
    ("question", "answer"),
    ("sentence1", "sentence2"),
    ("text", "text_pair"),
    ("premise", "hypothesis"),
)
NOTE = "an embedding model has no loss of its own: the replay takes in-batch softmax over cosine similarities x 20; give a recipe for another loss"


def fits(preprocessing: Preprocessing) -> bool:
    """Whether the folder is one of sentence-transformers."""
    return any((folder / "modules.json").is_file() or (folder / "1_Pooling").is_dir() for folder in preprocessing.folders)


def features(preprocessing: Preprocessing, sample: Sample) -> Features:
    """Two texts, each as the model's inputs."""
    preprocessing.note(NOTE)
    for first, second in _PAIRS:
        one, other = sample.values.get(first), sample.values.get(second)
        if isinstance(one, str) and isinstance(other, str):
            return {"texts": (preprocessing.encoded(one), preprocessing.encoded(other))}
    raise sample.refused("no pair of texts", f"Known names: {', '.join(' and '.join(pair) for pair in _PAIRS[:5])}.")


def collate(preprocessing: Preprocessing, rows: Sequence[Features]) -> Batch:
    """Pairs of texts: each tensor has the shape (rows, 2, tokens)."""
    padded = preprocessing.padded_text([text for row in rows for text in row["texts"]])
    return _paired(preprocessing, padded)


def _paired(preprocessing: Preprocessing, batch: Batch) -> Batch:
    by_first = torch.tensor(_by_first_token(preprocessing))
    return {**{name: value.reshape(-1, 2, value.shape[-1]) for name, value in batch.items()}, "by_first_token": by_first}


def _by_first_token(preprocessing: Preprocessing) -> bool:
    for folder in preprocessing.folders:
        file = folder / "1_Pooling" / "config.json"
        try:
            config: Any = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return isinstance(config, dict) and (config.get("pooling_mode_cls_token") is True or config.get("pooling_mode") == "cls")
    return False


def made_up(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> Batch:
    """Random pairs."""
    preprocessing.note(NOTE)
    return _paired(preprocessing, random_text(preprocessing, 2 * size, generator))


def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Cross-entropy of each first text against all second ones."""
    inputs = {name: value.flatten(0, 1) for name, value in batch.items() if name != "by_first_token"}
    by_first = bool(batch["by_first_token"])
    states = model(**inputs).last_hidden_state
    if by_first:
        vectors = states[:, 0]
    else:
        mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
        vectors = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    first, second = unit[0::2], unit[1::2]
    return torch.nn.functional.cross_entropy(first @ second.T * _SCALE, torch.arange(first.shape[0], device=first.device))


TASK = Task(name="text embedding", heads=("Model",), fits=fits, features=features, collate=collate, made_up=made_up, loss=loss, idle=("pooler.",))
