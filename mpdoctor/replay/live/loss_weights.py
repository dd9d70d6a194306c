"""How the Trainer weighs the micro-batches of a step: each by the same share, or each by its labels, or not at all.

From transformers 4.46 on, a model whose `forward` takes further arguments is told the number of labels of the whole step, and the losses of
micro-batches are added up, not averaged. Losses that divide by that number (language models) thus weigh by labels. Those that ignore it
(classification heads) add up to as many times the mean as there are micro-batches: so did the run's gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from mpdoctor.replay.live.task import IGNORED

WEIGHT = "loss_weight"
"""Entry of a batch: what its loss counts for in the step's sum, where a plain mean over micro-batches counts 1."""
COUNT = "num_items_in_batch"
"""The argument that tells a model the number of labels."""


def adds_up(model: torch.nn.Module, config: Mapping[str, Any]) -> bool:
    """Whether the run's Trainer added the losses of micro-batches up. `config` is config.json, which names the version that wrote it."""
    import transformers

    inner: Any = model.get_base_model() if hasattr(model, "get_base_model") else model  # type: ignore[operator]
    numbers = str(config.get("transformers_version") or transformers.__version__).split(".")
    if not all(n.isdecimal() for n in numbers[:2]) or tuple(int(n) for n in numbers[:2]) < (4, 46):
        return False
    if hasattr(inner, "accepts_loss_kwargs"):
        return bool(inner.accepts_loss_kwargs)
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in inspect.signature(inner.forward).parameters.values())


def divides_by_count(loss: Callable[[Mapping[str, Any]], Any], batch: Mapping[str, Any]) -> bool:
    """Whether a loss looks at the number of labels: it is asked twice, with two numbers."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            once, twice = (loss({**batch, COUNT: torch.tensor(number)}) for number in (64, 128))
        except Exception:  # a batch that the model cannot take is for the replay to tell
            return False
    return isinstance(once, torch.Tensor) and isinstance(twice, torch.Tensor) and float(twice) < 0.9 * float(once)


def weighted(batches: Sequence[Any], per_step: int, *, by_labels: bool, shifted: bool) -> list[Any]:
    """The batches, each with its weight. `shifted`: the first label of a row is not learnt. Batches without labels keep a plain mean."""
    found = []
    for start in range(0, len(batches), per_step):
        group = batches[start : start + per_step]
        counts = [_labels(batch, shifted=shifted) for batch in group]
        if None in counts or sum(n for n in counts if n) == 0:
            return list(batches)
        total = sum(n for n in counts if n)
        found += [
            {**b, WEIGHT: torch.tensor((n or 0) * len(group) / total if by_labels else float(len(group)))} for b, n in zip(group, counts, strict=True)
        ]
    return found


def _labels(batch: Mapping[str, Any], *, shifted: bool) -> int | None:
    labels = batch.get("labels")
    if not isinstance(labels, torch.Tensor):
        return None
    return int((labels[..., 1:] if shifted and labels.dim() > 1 else labels).ne(IGNORED).sum())


def weigh(loss: torch.Tensor, batch: Mapping[str, Any]) -> torch.Tensor:
    """The loss as it is, with a gradient that counts as much as the batch's weight says."""
    weight = batch.get(WEIGHT)
    if weight is not None and loss.requires_grad:
        factor = float(weight)
        loss.register_hook(lambda gradient: gradient * factor)
    return loss
