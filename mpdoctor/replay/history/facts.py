"""What a log's rows say: where the run broke, what led to it, and what is normal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from mpdoctor.core.report import StepRecord

SPIKE_LOSS = 3.0
"""A loss this many times the median of the rows before it is a spike."""
SPIKE_NORM = 10.0
"""A gradient norm this many times the median of the rows before it is a spike."""
WINDOW = 25
"""Rows that a value is compared with."""
COLLAPSE = 1e-3
"""A gradient norm below this share of its earlier median has collapsed."""
GROWTH = 3.0
"""A loss or gradient norm that grew by this factor in all, row after row, was growing."""
GROWTH_PER_ROW = 1.2
"""Least mean growth from row to row: steps that overshoot feed on themselves, slow drifts do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A quantity that went from one value to another between two steps."""

    what: str
    from_step: int
    to_step: int
    before: float
    after: float

    @property
    def factor(self) -> float:
        """How many times as large it became; infinite from zero."""
        return self.after / self.before if self.before else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFacts:
    """What the log says. Steps are the log's own numbers; None means that it was not seen.

    Attributes:
        rows: rows with a loss or gradient norm.
        broken_from: first step of the bad rows that last to the end: loss non-finite, loss exactly 0 after other
            losses, or gradient norm non-finite in more rows than a scaler's search explains.
        last_good: the last step before that whose row is good.
        nonfinite_loss: first step with a non-finite loss.
        nonfinite_norm: first step with a non-finite gradient norm.
        zero_loss: first step from which the loss is exactly 0.0 to the end, after other losses.
        filtered: whether that zero is a non-finite loss that the logger replaced: the Hugging Face Trainer adds, in
            place of a NaN loss, the mean of the losses since the last log line, which after a whole interval of NaN is 0.
        skipped: steps that a loss scaler skipped: a non-finite gradient norm beside a finite loss in an fp16 run.
        skip_rate: skipped rows as a share of rows that tell; None when no row tells.
        longest_skip: longest run of consecutive skipped rows.
        growth: loss or gradient norm that grew from row to row up to the break (or to the end).
        diverged: loss that ended well above where it began.
        spikes: rows whose loss or gradient norm stands far above the rows before it, and came back.
        collapse: gradient norm that fell to (nearly) nothing while the loss did not.
        dead_from_start: gradient norm exactly 0 in every row while there is a loss.
        constant_loss: the loss if it is the same in all of at least five rows.
        scale_first, scale_last, scale_min: the loss scale; None when not logged.
        scale_drops: number of rows in which it fell.
        scale_walk: a scale that fell all the way through the last rows.
        lr_at_break: learning rate at `broken_from`, or at the last row that has one before it.
    """

    rows: int = 0
    broken_from: int | None = None
    last_good: int | None = None
    nonfinite_loss: int | None = None
    nonfinite_norm: int | None = None
    zero_loss: int | None = None
    filtered: bool = False
    skipped: tuple[int, ...] = ()
    skip_rate: float | None = None
    longest_skip: int = 0
    growth: Change | None = None
    diverged: Change | None = None
    spikes: tuple[Change, ...] = ()
    collapse: Change | None = None
    dead_from_start: bool = False
    constant_loss: float | None = None
    scale_first: float | None = None
    scale_last: float | None = None
    scale_min: float | None = None
    scale_drops: int = 0
    scale_walk: Change | None = None
    lr_at_break: float | None = None


def facts_of(rows: Iterable[StepRecord], *, nan_filtered: bool | None, scaled: bool) -> tuple[HistoryFacts, tuple[StepRecord, ...]]:
    """Judge the rows; returns them too, with `skipped` filled in where that follows from the log.

    Args:
        rows: the log, oldest first.
        nan_filtered: whether the logger replaces non-finite losses; None when not known.
        scaled: whether the run used a loss scaler, which answers a non-finite gradient by skipping the step.
    """
    judged = tuple(r for r in rows if r.loss is not None or r.grad_norm is not None or r.scale is not None)
    zero = _zero_loss(judged)
    bad = [_is_bad(row, zero) for row in judged]
    if scaled:
        judged = tuple(replace(r, skipped=True) if r.skipped is None and _skipped_by_scaler(r) else r for r in judged)
    broken = _broken_from(judged, bad, scaled=scaled)
    last_good = max((i for i in range(broken if broken is not None else 0) if not bad[i]), default=None)
    skipped = tuple(r.step for r in judged if r.skipped)
    tells = [r for r in judged if r.skipped is not None or (scaled and r.grad_norm is not None)]
    before = judged[:broken] if broken is not None else judged
    scales = [(r.step, r.scale) for r in judged if r.scale is not None]
    grows = _growth(before)
    return (
        HistoryFacts(
            rows=len(judged),
            broken_from=judged[broken].step if broken is not None else None,
            last_good=judged[last_good].step if last_good is not None else None,
            nonfinite_loss=next((r.step for r in judged if r.loss is not None and not math.isfinite(r.loss)), None),
            nonfinite_norm=next((r.step for r in judged if r.grad_norm is not None and not math.isfinite(r.grad_norm)), None),
            zero_loss=zero,
            filtered=zero is not None and (nan_filtered is True or _norm_is_bad_from(judged, zero)),
            skipped=skipped,
            skip_rate=len(skipped) / len(tells) if tells else None,
            longest_skip=_longest_run([bool(r.skipped) for r in judged]),
            growth=grows,
            diverged=_diverged(before),
            spikes=_spikes(before, grows),
            collapse=_collapse(before),
            dead_from_start=_dead_from_start(before),
            constant_loss=_constant_loss(before),
            scale_first=scales[0][1] if scales else None,
            scale_last=scales[-1][1] if scales else None,
            scale_min=min((s for _, s in scales), default=None),
            scale_drops=sum(later < earlier for (_, earlier), (_, later) in pairwise(scales)),
            scale_walk=_scale_walk(scales),
            lr_at_break=_lr_at(judged, broken),
        ),
        judged,
    )


def _is_bad(row: StepRecord, zero: int | None) -> bool:
    if row.loss is not None and (not math.isfinite(row.loss) or (zero is not None and row.step >= zero and row.loss == 0)):
        return True
    return row.grad_norm is not None and not math.isfinite(row.grad_norm)


def _skipped_by_scaler(row: StepRecord) -> bool:
    return row.grad_norm is not None and not math.isfinite(row.grad_norm) and (row.loss is None or (math.isfinite(row.loss) and row.loss != 0))


def _broken_from(rows: Sequence[StepRecord], bad: Sequence[bool], *, scaled: bool) -> int | None:
    """Index of the first of the bad rows that last to the end.

    A scaler that begins at 2^16 may skip some steps in a row while it searches; bad gradients alone
    count as broken only when the last five rows or more are all bad.
    """
    start = len(bad)
    while start > 0 and bad[start - 1]:
        start -= 1
    if start == len(bad):
        return None
    only_norms = all(row.skipped for row in rows[start:])
    return None if scaled and only_norms and len(bad) - start < 5 else start


def _zero_loss(rows: Sequence[StepRecord]) -> int | None:
    """Step from which the loss is exactly 0 to the end (in two rows at least, or beside a bad gradient norm), after other losses."""
    losses = [(r.step, r.loss, r.grad_norm) for r in rows if r.loss is not None]
    start = len(losses)
    while start > 0 and losses[start - 1][1] == 0:
        start -= 1
    zeros = losses[start:]
    if not zeros or not any(loss for _, loss, _ in losses[:start]):
        return None
    proven = any(norm is not None and not math.isfinite(norm) for _, _, norm in zeros)
    # Losses that came down by themselves do not jump to exactly 0 from anywhere.
    last = next(abs(loss) for _, loss, _ in reversed(losses[:start]) if loss)
    return zeros[0][0] if proven or (len(zeros) >= 2 and last > 1e-4) else None


def _norm_is_bad_from(rows: Sequence[StepRecord], step: int) -> bool:
    return any(r.step >= step and r.grad_norm is not None and not math.isfinite(r.grad_norm) for r in rows)


def _longest_run(flags: Iterable[bool]) -> int:
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


def _finite(rows: Sequence[StepRecord], name: str) -> list[tuple[int, float]]:
    return [(r.step, v) for r in rows if (v := getattr(r, name)) is not None and math.isfinite(v)]


def _growth(rows: Sequence[StepRecord]) -> Change | None:
    """The loss that grew row by row to the end, above all that came before; else the gradient norm, if the loss did not fall meanwhile."""
    losses, norms = _finite(rows, "loss"), _finite(rows, "grad_norm")
    grown = _grown(losses, "loss")
    if grown is not None:
        return grown
    grown = _grown(norms, "gradient norm")
    if grown is None:
        return None
    meanwhile = [loss for step, loss in losses if grown.from_step <= step <= grown.to_step]
    return None if meanwhile and meanwhile[-1] < 0.9 * meanwhile[0] else grown


def _grown(values: Sequence[tuple[int, float]], what: str) -> Change | None:
    """Growth over the last rows, never falling by more than a tenth on the way, to a height not seen before."""
    if len(values) < 4:
        return None
    start = len(values) - 1
    while start > 0 and values[start - 1][1] <= values[start][1] * 1.1:
        start -= 1
    lowest = min(range(start, len(values)), key=lambda i: (values[i][1], -i))
    (first_step, before), (last_step, after) = values[lowest], values[-1]
    count = len(values) - 1 - lowest
    earlier = max((v for _, v in values[:start]), default=0.0)
    if count < 3 or before <= 0 or after < GROWTH * before or after < GROWTH_PER_ROW**count * before or after < 1.5 * earlier:
        return None
    return Change(what=what, from_step=first_step, to_step=last_step, before=before, after=after)


def _diverged(rows: Sequence[StepRecord]) -> Change | None:
    losses = _finite(rows, "loss")
    if len(losses) < 6:
        return None
    tail = losses[-max(3, len(losses) // 10) :]
    first, last = losses[0][1], median(v for _, v in tail)
    if first > 0 and last >= 1.5 * first and min(v for _, v in tail) > first:
        return Change(what="loss", from_step=losses[0][0], to_step=losses[-1][0], before=first, after=last)
    return None


def _spikes(rows: Sequence[StepRecord], growth: Change | None) -> tuple[Change, ...]:
    found = []
    for name, what, limit in (("loss", "loss", SPIKE_LOSS), ("grad_norm", "gradient norm", SPIKE_NORM)):
        values = _finite(rows, name)
        for index in range(5, len(values)):
            step, value = values[index]
            usual = median(v for _, v in values[max(0, index - WINDOW) : index])
            if usual > 0 and value > limit * usual and not (growth and growth.from_step <= step <= growth.to_step):
                found.append(Change(what=what, from_step=values[index - 1][0], to_step=step, before=usual, after=value))
    return tuple(sorted(found, key=lambda change: change.to_step))


def _collapse(rows: Sequence[StepRecord]) -> Change | None:
    norms, losses = _finite(rows, "grad_norm"), _finite(rows, "loss")
    if len(norms) < 6:
        return None
    tail = norms[-3:]
    earlier = [v for _, v in norms[:-3]]
    usual = median(earlier[: max(3, len(earlier) // 2)])
    if usual <= 0 or max(v for _, v in tail) > COLLAPSE * usual:
        return None
    if len(losses) >= 4 and abs(losses[-1][1]) < 0.1 * abs(losses[0][1]):
        return None  # the loss went down with the gradient: the model fits its data
    start = next(i for i, (_, v) in enumerate(norms) if all(w <= COLLAPSE * usual for _, w in norms[i:]))
    return Change(what="gradient norm", from_step=norms[max(start - 1, 0)][0], to_step=norms[start][0], before=usual, after=norms[start][1])


def _dead_from_start(rows: Sequence[StepRecord]) -> bool:
    norms, losses = _finite(rows, "grad_norm"), _finite(rows, "loss")
    return len(norms) >= 2 and all(v == 0 for _, v in norms) and any(v != 0 for _, v in losses)


def _constant_loss(rows: Sequence[StepRecord]) -> float | None:
    losses = [v for _, v in _finite(rows, "loss")]
    return losses[0] if len(losses) >= 5 and losses[0] != 0 and len(set(losses)) == 1 else None


def _scale_walk(scales: Sequence[tuple[int, float]]) -> Change | None:
    """A scale that fell at least four times on its way to the end of the log and never rose on it."""
    start = len(scales) - 1
    while start > 0 and scales[start - 1][1] >= scales[start][1]:
        start -= 1
    falling = scales[max(start, 0) :]
    drops = sum(later < earlier for (_, earlier), (_, later) in pairwise(falling))
    if drops < 4:
        return None
    first = next(i for i, (_, scale) in enumerate(falling) if scale > falling[i + 1][1])
    return Change(what="loss scale", from_step=falling[first][0], to_step=falling[-1][0], before=falling[first][1], after=falling[-1][1])


def _lr_at(rows: Sequence[StepRecord], index: int | None) -> float | None:
    if index is None:
        return None
    if rows[index].lr is not None:
        return rows[index].lr
    return next((r.lr for r in reversed(rows[:index]) if r.lr is not None), None)
