"""Which of a log's names is the loss, the gradient norm, the loss scale, the learning rate, the step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mpdoctor.core.report import StepRecord

_NAMES: Mapping[str, tuple[str, ...]] = {
    "step": (
        "step",
        "global_step",
        "global step",
        "trainer/global_step",
        "train/global_step",
        "_step",
        "iteration",
        "iter",
        "num_updates",
        "update",
        "steps",
    ),
    "loss": (
        "train/loss",
        "loss",
        "train_loss",
        "train_loss_step",
        "train/loss_step",
        "training_loss",
        "loss_step",
        "lm loss",
        "lm_loss",
        "loss/train",
        "train/lm_loss",
        "total_loss",
        "train_inner/loss",
        "train loss",
    ),
    "grad_norm": (
        "grad_norm",
        "train/grad_norm",
        "grad norm",
        "gnorm",
        "gradient_norm",
        "grad-norm",
        "grad_2.0_norm_total",
        "optim/total_grad_norm",
        "train/gnorm",
        "train_inner/gnorm",
        "gradient norm",
        "total_norm",
        "grad_norm/total",
    ),
    "scale": (
        "loss_scale",
        "loss scale",
        "train/loss_scale",
        "grad_scale",
        "amp_scale",
        "scale",
        "loss-scale",
        "train_inner/loss_scale",
        "amp/scale",
    ),
    "lr": ("lr", "learning_rate", "train/learning_rate", "learning rate", "train/lr", "learning-rate", "train_inner/lr", "lr/group0"),
}
"""Field of a row -> names that it goes by, the most telling first (lower case)."""

_OTHER_SPLITS = ("eval", "valid", "val_", "val/", "test")
_WANDB_RUN = re.compile(r"^.{1,200}? - (?=\S)")


def fields_of(names: Iterable[str]) -> dict[str, str]:
    """The name that each field goes by in this log; fields that it has not are absent.

    Learning rates of optimizers (`lr-AdamW`, `lr-AdamW/pg1`) count as the rate when nothing else does.
    """
    known = {clean(name): name for name in names}
    found = {}
    for field, candidates in _NAMES.items():
        name = next((known[c] for c in candidates if c in known), None)
        if name is None and field == "lr":
            name = next((original for cleaned, original in known.items() if cleaned.startswith("lr-")), None)
        if name is None and field == "loss":
            name = next((original for cleaned, original in known.items() if cleaned.endswith("/loss") and not _other_split(cleaned)), None)
        if name is not None:
            found[field] = name
    return found


def clean(name: str) -> str:
    """A column's name in lower case, without the run's name that W&B puts before it (`run-7 - train/loss`)."""
    return _WANDB_RUN.sub("", name.strip()).strip().lower()


def _other_split(name: str) -> bool:
    return name.startswith(_OTHER_SPLITS)


def number(value: Any) -> float | None:
    """A logged number: JSON numbers, and the texts that loggers write for numbers (`"nan"`, `"4.163"`, `"1.5E-04"`)."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, str) and len(value) <= 40:
        try:
            return float(value)
        except ValueError:
            return None
    return None


def step_number(value: Any) -> int | None:
    """A logged step: a whole number of a size that steps have."""
    found = number(value)
    return int(found) if found is not None and abs(found) < 2**53 else None


def row_of(values: Mapping[str, Any], fields: Mapping[str, str], step: int | None = None) -> StepRecord | None:
    """The row that a log line's values make; None when it has no step, or no value."""
    at = step_number(values.get(fields["step"])) if "step" in fields else None
    at = step if at is None else at
    loss, norm, scale, lr = (number(values.get(fields[name])) if name in fields else None for name in ("loss", "grad_norm", "scale", "lr"))
    if at is None or all(value is None for value in (loss, norm, scale, lr)):
        return None
    return StepRecord(step=at, loss=loss, grad_norm=norm, scale=scale, lr=lr, source="history")


def merged(rows: Iterable[StepRecord]) -> tuple[StepRecord, ...]:
    """One row per step, in the order of the steps' first rows: loggers write a step's values in several lines."""
    by_step: dict[int, StepRecord] = {}
    for row in rows:
        first = by_step.get(row.step)
        if first is None:
            by_step[row.step] = row
            continue
        by_step[row.step] = StepRecord(
            step=row.step,
            loss=first.loss if row.loss is None else row.loss,
            grad_norm=first.grad_norm if row.grad_norm is None else row.grad_norm,
            scale=first.scale if row.scale is None else row.scale,
            lr=first.lr if row.lr is None else row.lr,
            skipped=first.skipped if row.skipped is None else row.skipped,
            source="history",
        )
    return tuple(by_step.values())
