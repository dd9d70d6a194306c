"""Which rows the Trainer's next steps read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

GROUPED = (
    "the run groups rows by length, in an order drawn from a state that no checkpoint keeps: the replay's batches have rows of like length, "
    "and may hold other rows than the run's"
)


class RowOrder:
    """The order of rows, epoch by epoch.

    Trainer shuffles each epoch by a generator seeded with seed + epoch (accelerate's seedable sampler); it can also read the rows in order, or
    put rows of like length together. Each process of a distributed run reads every n-th batch; here one reads them all.

    Args:
        count: rows of the data.
        settings: the run's settings.
        processes: how many read batches in turn.
        lengths: tokens of every row; called where rows are grouped by length.
        notes: what had to be assumed is added here.
    """

    def __init__(self, count: int, settings: Mapping[str, Any], processes: int, lengths: Callable[[], Sequence[int]], notes: list[str]) -> None:
        self.count = count
        self.size = min(batch_size(settings), count)
        self.accumulation = accumulation(settings) * processes
        self.seed = int(settings.get("data_seed") or settings.get("seed") or 42)
        self.strategy = strategy(settings)
        whole = count // self.size if settings.get("dataloader_drop_last") else math.ceil(count / self.size)
        self.per_epoch = max(1, whole)
        self._lengths = lengths
        self._epochs: dict[int, list[int]] = {}
        if self.strategy in ("group_by_length", "batch_rebalance") and GROUPED not in notes:
            notes.append(GROUPED)

    def batches(self, step: int, wanted: int) -> list[list[int]]:
        """Rows of the next `wanted` micro-batches after this many steps."""
        start = self._batches_before(step)
        return [self._batch(start + i) for i in range(wanted)]

    def step_of(self, row: int, after: int) -> int:
        """The first step, from `after` on, that reads a row. With an order that differs by epoch it lies in the next two epochs."""
        number = self._batches_before(after)
        while row not in self._batch(number):
            number += 1
        epoch, position = divmod(number, self.per_epoch)
        return epoch * self._steps_per_epoch + position // self.accumulation

    @property
    def _steps_per_epoch(self) -> int:
        return math.ceil(self.per_epoch / self.accumulation)

    def _batches_before(self, step: int) -> int:
        """An epoch's last step takes the micro-batches that are left."""
        epoch, within = divmod(step, self._steps_per_epoch)
        return epoch * self.per_epoch + within * self.accumulation

    def _batch(self, number: int) -> list[int]:
        epoch, position = divmod(number, self.per_epoch)
        return self._epoch(epoch)[position * self.size : (position + 1) * self.size]

    def _epoch(self, epoch: int) -> list[int]:
        if epoch not in self._epochs:
            self._epochs[epoch] = self._drawn(epoch)
        return self._epochs[epoch]

    def _drawn(self, epoch: int) -> list[int]:
        generator = torch.Generator().manual_seed(self.seed + epoch)
        if self.strategy == "sequential":
            return list(range(self.count))
        if self.strategy in ("group_by_length", "batch_rebalance"):
            from transformers.trainer_pt_utils import get_length_grouped_indices

            grouped: list[int] = get_length_grouped_indices(list(self._lengths()), self.size * self.accumulation, generator=generator)
            return grouped
        shuffled: list[int] = torch.randperm(self.count, generator=generator).tolist()
        return shuffled


def batch_size(settings: Mapping[str, Any]) -> int:
    """Rows per micro-batch."""
    return max(1, int(settings.get("per_device_train_batch_size") or 8))


def accumulation(settings: Mapping[str, Any]) -> int:
    """Micro-batches per step and process."""
    return max(1, int(settings.get("gradient_accumulation_steps") or 1))


def strategy(settings: Mapping[str, Any]) -> str:
    """`random`, `sequential`, `group_by_length` or `batch_rebalance`."""
    value = settings.get("train_sampling_strategy")
    named = str(value.get("value") if isinstance(value, dict) else value or "")
    return named or ("group_by_length" if settings.get("group_by_length") is True else "random")
