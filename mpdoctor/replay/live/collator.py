"""Batches as the task's usual collator makes them: by the model's head, with the labels that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from mpdoctor.core.errors import NothingToJudge, UnreadableInput
from mpdoctor.replay.data_evidence import FaultKind, RowFault
from mpdoctor.replay.live.data import TEXTS, Data, with_nan
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import IGNORED, task_of

_CHECKED_ROWS = 200_000
"""Rows of the data that are held against the head; a data file may be long."""
_DATA_ONLY = ("input_ids", "pixel_values", "input_values", "input_features")
"""Inputs that tasks make batches of themselves, with padding."""


class Collator:
    """Makes batches for one model.

    Args:
        preprocessing: the model with its tokenizer and processors.
    """

    def __init__(self, preprocessing: Preprocessing) -> None:
        self.preprocessing = preprocessing
        self.task = task_of(preprocessing)
        self.misfits: dict[int, RowFault] = {}
        """Rows of the batches made so far that do not fit, by number."""

    @property
    def purpose(self) -> str | None:
        """What the model is trained for, in words; None where its class does not say."""
        return self.task.name if self.task is not None else None

    def batch(self, data: Data, numbers: list[int]) -> dict[str, torch.Tensor]:
        """A batch of these rows. Raises UnreadableInput naming the row that cannot be used."""
        if self._takes(data.rows[numbers[0]].values) or self.task is None:
            return self._numbers(data, numbers)
        features = [self.task.features(self.preprocessing, data.sample(n)) for n in numbers]
        batch = self.task.collate(self.preprocessing, features)
        outside = ((i, fault) for i, sample in enumerate(features) for fault in self._outside(sample))
        for i, (kind, text) in (*outside, *self.task.misfits(self.preprocessing, features, batch)):
            self.misfits.setdefault(numbers[i], RowFault(kind=kind, row=numbers[i], line=data.rows[numbers[i]].line, text=text))
        return batch

    def made_up(self, size: int, number: int) -> dict[str, torch.Tensor]:
        """A batch of random inputs, the same for the same number. Raises NothingToJudge for a model whose inputs are not known."""
        if self.task is None:
            raise NothingToJudge(
                f"what a {self.preprocessing.kind} is trained on is not known, so batches cannot be made up",
                "a batch (--data batch.pt), rows with the model's own inputs, or a recipe would let mpdoctor replay it",
            )
        return self.task.made_up(self.preprocessing, size, torch.Generator().manual_seed(1000 + number))

    def ready(self, batch: Any) -> Any:
        """A batch that came ready made."""
        if not isinstance(batch, Mapping):
            raise UnreadableInput(f"{self.preprocessing.folders[0]}: a .pt batch must be a dict of tensors, as the model takes them", None)
        return dict(batch)

    def leave_idle(self, model: torch.nn.Module) -> None:
        """Freeze the parts of a model that the task's loss does not read."""
        for name, parameter in model.named_parameters():
            if self.task is not None and name.startswith(self.task.idle):
                parameter.requires_grad_(False)

    def loss(self, model: torch.nn.Module, batch: Any) -> torch.Tensor | None:
        """The task's own loss of a batch; None where the model's output has it."""
        return self.task.loss(model, batch) if self.task is not None and self.task.loss is not None else None

    def faults(self, data: Data) -> tuple[RowFault, ...]:
        """Rows of the data that do not fit the head. Rows that lack what the task needs are left to `batch`, which names them."""
        if self.task is None or not data.rows or self._takes(data.rows[0].values):
            return ()
        found = []
        for number in range(min(len(data.rows), _CHECKED_ROWS)):
            try:
                for kind, text in self.task.faults(self.preprocessing, data.sample(number)):
                    found.append(RowFault(kind=kind, row=number, line=data.rows[number].line, text=text))
            except UnreadableInput:
                continue
        return tuple(found)

    def length(self, data: Data, number: int) -> int:
        """Tokens of a row, as Trainer measures it to group rows by length; 0 for one that is not made of tokens."""
        if self.task is None:
            return 0
        ids = self.task.features(self.preprocessing, data.sample(number)).get("input_ids")
        return len(ids) if ids is not None else 0

    # -- parts

    def _outside(self, sample: Mapping[str, Any]) -> Iterator[tuple[FaultKind, str]]:
        """The first token that the embedding has no row for."""
        count = self.preprocessing.vocabulary
        for name in self.task.tokens if self.task is not None and count else ():
            tokens = sample.get(name)
            ignored = IGNORED if name == "labels" else 0
            bad = next((t for t in tokens if t != ignored and not 0 <= t < count), None) if isinstance(tokens, list) else None
            if bad is not None:
                what = "token" if name == "input_ids" else "label"
                yield FaultKind.TOKEN, f"{what} {bad}, and the model's vocabulary has {count:,} tokens"

    def _takes(self, row: Mapping[str, Any]) -> bool:
        """Whether a row holds the model's own inputs as numbers (`past_values`, ...), not what a task makes inputs of."""
        if any(name in row for name in _DATA_ONLY) or any(isinstance(row.get(name), str) for name in TEXTS):
            return False
        return any(name in self.preprocessing.arguments and name != "labels" and isinstance(value, list) for name, value in row.items())

    def _numbers(self, data: Data, numbers: list[int]) -> dict[str, torch.Tensor]:
        """The fields that the model takes, as they are."""
        batch = {}
        for name in data.rows[numbers[0]].values:
            if name not in self.preprocessing.arguments:
                continue
            try:
                tensor = torch.tensor([with_nan(data.rows[n].values.get(name)) for n in numbers])
            except (ValueError, TypeError) as error:
                raise UnreadableInput(f"{data.place(numbers[0])}: the field {name} is no array of equal size in every row: {error}", None) from None
            batch[name] = tensor.float() if tensor.is_floating_point() else tensor
        if not batch:
            raise data.sample(numbers[0]).refused(f"none of its fields is an input of {self.preprocessing.kind}")
        return batch
