"""Labels of classification heads: one class, several classes, or a number; and which of them the head cannot take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from mpdoctor.replay.data_evidence import FaultKind
from mpdoctor.replay.live.data import Sample
from mpdoctor.replay.live.preprocessing import Preprocessing
from mpdoctor.replay.live.task import IGNORED, Features

LABELS = ("labels", "label", "target", "score", "class", "category")


def problem_of(preprocessing: Preprocessing) -> str:
    """`regression`, `multi_label_classification` or `single_label_classification`, as transformers decides it."""
    named = getattr(preprocessing.config, "problem_type", None)
    return str(named) if named else "regression" if preprocessing.labels == 1 else "single_label_classification"


def label_of(preprocessing: Preprocessing, sample: Sample) -> Any:
    """The label of a row as the loss takes it: a class number, a number (NaN where it is missing), or a list of 0 and 1.

    Raises UnreadableInput for a label that cannot be made one.
    """
    if not any(name in sample.values for name in LABELS):
        raise sample.refused("no label in this row", f"A {preprocessing.kind} needs one of {', '.join(LABELS)}.")
    label = next(sample.values[name] for name in LABELS if name in sample.values)
    match problem_of(preprocessing):
        case "regression":
            return _number(label, preprocessing, sample)
        case "multi_label_classification":
            return _several(label, preprocessing, sample)
        case _:
            return _class(label, preprocessing, sample)


def _number(label: Any, preprocessing: Preprocessing, sample: Sample) -> float | list[float]:
    try:
        if isinstance(label, list) and preprocessing.labels > 1:
            return [float(v) for v in label]
        return math.nan if label is None else float(label)
    except (TypeError, ValueError):
        raise sample.refused(f"the label {label!r} is no number, which a regression needs") from None


def _class(label: Any, preprocessing: Preprocessing, sample: Sample) -> int:
    if label is None:
        raise sample.refused("the label is empty")
    named = preprocessing.label_ids
    if isinstance(label, str) and label in named:
        return named[label]
    try:
        number = int(label)
    except (TypeError, ValueError, OverflowError):
        known = ", ".join(list(named)[:10]) or "the model's labels"
        raise sample.refused(f"the label {label!r} is neither a number nor one of {known}") from None
    return number


def _several(label: Any, preprocessing: Preprocessing, sample: Sample) -> list[float]:
    """A list with a number for each class, or a list of the classes that apply."""
    if not isinstance(label, list):
        raise sample.refused(f"the label {label!r} is no list, which a head for several classes at once needs")
    if len(label) == preprocessing.labels and all(isinstance(v, int | float) for v in label):
        return [float(v) for v in label]
    numbers = [_class(v, preprocessing, sample) for v in label]
    if any(not 0 <= n < preprocessing.labels for n in numbers):
        raise sample.refused(f"the labels {label!r} do not fit a head with {preprocessing.labels} outputs")
    return [float(i in numbers) for i in range(preprocessing.labels)]


def class_faults(preprocessing: Preprocessing, sample: Sample) -> Iterator[tuple[FaultKind, str]]:
    """The label of a row, where the head has no output for it or the loss would not be finite."""
    label = label_of(preprocessing, sample)
    match problem_of(preprocessing):
        case "single_label_classification":
            yield from outside((label,), preprocessing)
        case _:
            numbers = label if isinstance(label, list) else [label]
            bad = [n for n in numbers if not math.isfinite(n)]
            if bad:
                yield FaultKind.LABEL, f"the label is {'missing' if math.isnan(bad[0]) else bad[0]}, which makes the loss {bad[0]}"


def outside(labels: Sequence[int], preprocessing: Preprocessing) -> Iterator[tuple[FaultKind, str]]:
    """The first class number that the head has no output for."""
    count = preprocessing.labels
    bad = next((n for n in labels if n != IGNORED and not 0 <= n < count), None)
    if bad is not None:
        yield FaultKind.LABEL, f"label {bad}, and the head has {count} output{'s' if count != 1 else ''} (0 to {count - 1})"


def label_tensor(preprocessing: Preprocessing, rows: Sequence[Features]) -> torch.Tensor:
    """The labels of a batch in the dtype that the loss takes."""
    kind = torch.long if problem_of(preprocessing) == "single_label_classification" else torch.float32
    return torch.tensor([row["labels"] for row in rows], dtype=kind)


def made_up_labels(preprocessing: Preprocessing, size: int, generator: torch.Generator) -> torch.Tensor:
    """Random labels that fit the head."""
    match problem_of(preprocessing):
        case "regression":
            return torch.randn((size,) if preprocessing.labels == 1 else (size, preprocessing.labels), generator=generator)
        case "multi_label_classification":
            return torch.randint(0, 2, (size, preprocessing.labels), generator=generator).float()
        case _:
            return torch.randint(0, preprocessing.labels, (size,), generator=generator)
