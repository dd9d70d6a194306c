"""What the training of one kind of head reads. One file per task under `tasks/`, found by scanning that folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from mpdoctor.core import rule
from mpdoctor.replay.data_evidence import FaultKind
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing

Features = dict[str, Any]
"""One sample as the model takes it, not padded."""
Batch = dict[str, torch.Tensor]
IGNORED = -100
"""Label that losses leave out."""


Fault = tuple[FaultKind, str]


def no_fault(_preprocessing: Preprocessing, _sample: Sample) -> Iterator[Fault]:
    """Finds nothing wrong with a row."""
    return iter(())


def no_misfit(_preprocessing: Preprocessing, _rows: Sequence[Features], _batch: Batch) -> Iterator[tuple[int, Fault]]:
    """Finds nothing wrong with a batch."""
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """How models with one kind of head are trained.

    Attributes:
        name: what people call it.
        heads: endings of the class names that have this head.
        fits: whether a model of such a class is of this task; None for all of them.
        features: one sample as the model takes it. Raises UnreadableInput (by `Sample.refused`) for a row that lacks what it needs.
        collate: pads samples to a batch, as the usual collator of the task does.
        made_up: a batch of this many rows from a generator, where there is no data. Raises NothingToJudge where none can be made.
        faults: what is wrong with a row for this head; cheap, called for every row of the data.
        misfits: what is wrong with samples in their batch: each with its place among them.
        tokens: features that are token ids; all of them must be rows of the embedding.
        loss: the loss of a batch, where the model's own output has none.
        idle: how the names of parameters begin that the loss does not read.
    """

    name: str
    heads: tuple[str, ...]
    features: Callable[[Preprocessing, Sample], Features]
    collate: Callable[[Preprocessing, Sequence[Features]], Batch]
    made_up: Callable[[Preprocessing, int, torch.Generator], Batch]
    fits: Callable[[Preprocessing], bool] | None = None
    faults: Callable[[Preprocessing, Sample], Iterator[Fault]] = no_fault
    misfits: Callable[[Preprocessing, Sequence[Features], Batch], Iterator[tuple[int, Fault]]] = no_misfit
    tokens: tuple[str, ...] = ("input_ids",)
    loss: Callable[[torch.nn.Module, Batch], torch.Tensor] | None = None
    idle: tuple[str, ...] = ()


@cache
def all_tasks() -> tuple[Task, ...]:
    """All tasks, those that ask more than a class name first."""
    found = [module.TASK for module in rule.modules("mpdoctor.replay.live.tasks")]
    return tuple(sorted(found, key=lambda t: (t.fits is None, t.name)))


def task_of(preprocessing: Preprocessing) -> Task | None:
    """The task that a model's class and configuration imply, or None."""
    kind = preprocessing.kind
    return next((t for t in all_tasks() if kind.endswith(t.heads) and (t.fits is None or t.fits(preprocessing))), None)
