"""How the Trainer averages a loss over the micro-batches of a step: by labels that count, where the model can; else by batches.

From transformers 4.46 on a model whose `forward` takes further arguments gets the number of labels of the whole step, and its losses are summed,
not averaged. Losses that do not look at the number (classification heads) then add up to as many times the mean as there are micro-batches: so
did the run's gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from mpdoctor.replay.live.task import IGNORED

COUNT = "num_items_in_batch"
"""The name of the argument, and of the entry in a batch."""


def sums_losses(model: torch.nn.Module, config: Mapping[str, Any]) -> bool:
    """Whether the run's Trainer summed the losses of micro-batches. `config` is config.json, which names the version that wrote it."""
    import transformers

    inner: Any = model.get_base_model() if hasattr(model, "get_base_model") else model  # type: ignore[operator]
    numbers = str(config.get("transformers_version") or transformers.__version__).split(".")
    if not all(n.isdecimal() for n in numbers[:2]) or tuple(int(n) for n in numbers[:2]) < (4, 46):
        return False
    if hasattr(inner, "accepts_loss_kwargs"):
        return bool(inner.accepts_loss_kwargs)
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in inspect.signature(inner.forward).parameters.values())


def count_items(batches: Sequence[Any], per_step: int, *, shifted: bool) -> list[Any]:
    """The batches, each with the number of labels that count in its whole step. `shifted`: the first label of a row is not learnt."""
    counted = []
    for start in range(0, len(batches), per_step):
        group = batches[start : start + per_step]
        labels = [batch.get("labels") for batch in group]
        if not all(isinstance(value, torch.Tensor) for value in labels):
            return list(batches)
        number = sum(int((value[..., 1:] if shifted and value.dim() > 1 else value).ne(IGNORED).sum()) for value in labels if value is not None)
        counted += [{**batch, COUNT: torch.tensor(number)} for batch in group]
    return counted
