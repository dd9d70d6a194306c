"""The autopsy over a run's checkpoints: where it turned, and the last good one to resume from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mpdoctor.core.errors import MpdoctorError
from mpdoctor.replay.autopsy.examine import autopsy
from mpdoctor.replay.autopsy.result import AutopsyResult
from mpdoctor.replay.checkpoints import ProblemKind, open_checkpoint
from mpdoctor.replay.checkpoints.checkpoint import MODEL_ROLES, MOMENT_ROLES
from mpdoctor.replay.checkpoints.series import Member

_JUMP = 8.0
"""A largest weight (or moment) this many times that of the checkpoint before has turned."""
_DAMAGE = frozenset({ProblemKind.TRUNCATED, ProblemKind.MISSING, ProblemKind.EMPTY, ProblemKind.MALFORMED, ProblemKind.UNREADABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One checkpoint of the series in numbers.

    Attributes:
        path: the checkpoint.
        step: the step in its name.
        error: why it could not be read; the numbers are then None.
        nonfinite: non-finite values in weights.
        nonfinite_moments: non-finite values in optimizer state.
        amax: largest finite weight.
        zeros: share of weights that are exactly zero.
        second_moment: largest second moment.
        scale: loss scale.
        optimizer_step: steps that the optimizer took.
        damaged: files that are truncated, missing or malformed.
    """

    path: Path
    step: int
    error: str | None = None
    nonfinite: int | None = None
    nonfinite_moments: int | None = None
    amax: float | None = None
    zeros: float | None = None
    second_moment: float | None = None
    scale: float | None = None
    optimizer_step: int | None = None
    damaged: int = 0

    @property
    def good(self) -> bool:
        """Whether a run can resume from it: readable, whole, and finite."""
        return (
            self.error is None and not self.nonfinite and not self.nonfinite_moments and not self.damaged and (self.scale is None or self.scale > 0)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A quantity that changed sharply between two checkpoints of the series."""

    what: str
    before: Point
    after: Point
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResult:
    """What the series shows.

    Attributes:
        points: all checkpoints, oldest first.
        first_bad: the first one that a run cannot resume from, all later ones being bad too; None when the newest is good.
        last_good: the newest good one before that (or of all).
        turns: sharp changes, oldest first.
    """

    points: tuple[Point, ...]
    first_bad: Point | None
    last_good: Point | None
    turns: tuple[Turn, ...]


def autopsy_series(members: Sequence[Member], *, progress: Callable[[int, int, str], None] | None = None) -> SeriesResult:
    """Judge each checkpoint of a series. A member that cannot be read is a point with its error.

    `progress` is called with checkpoints done, checkpoints in all, and the name of the one being read.
    """
    points = []
    for index, member in enumerate(members):
        if progress is not None:
            progress(index, len(members), member.path.name)
        points.append(_point(member))
    return judge_series(tuple(points))


def judge_series(points: tuple[Point, ...]) -> SeriesResult:
    """Where the series turned."""
    start = len(points)
    while start > 0 and not points[start - 1].good:
        start -= 1
    good = [p for p in points[:start] if p.good]
    turns = [turn for before, after in pairwise(points) for turn in _turns(before, after)]
    return SeriesResult(
        points=points, first_bad=points[start] if start < len(points) else None, last_good=good[-1] if good else None, turns=tuple(turns)
    )


def _point(member: Member) -> Point:
    try:
        checkpoint = open_checkpoint(member.path)
        result = autopsy(checkpoint)
    except MpdoctorError as error:
        return Point(path=member.path, step=member.step, error=error.message)
    weights = result.by_role(*MODEL_ROLES)
    counted = sum(t.counted for t in weights)
    damage = [p for p in (*checkpoint.problems, *result.problems) if p.kind in _DAMAGE]
    steps = result.optimizer.steps if result.optimizer else None
    return Point(
        path=member.path,
        step=member.step,
        nonfinite=sum(t.nonfinite for t in weights),
        nonfinite_moments=sum(t.nonfinite for t in result.by_role(*MOMENT_ROLES)),
        amax=max((t.amax for t in weights), default=None),
        zeros=sum(t.zeros for t in weights) / counted if counted else None,
        second_moment=_largest_second(result),
        scale=result.scaler.scale if result.scaler else None,
        optimizer_step=steps[1] if steps else None,
        damaged=len(damage),
    )


def _largest_second(result: AutopsyResult) -> float | None:
    return max((t.amax for t in result.optimizer.second), default=None) if result.optimizer else None


def _turns(before: Point, after: Point) -> list[Turn]:
    found = []
    if before.nonfinite == 0 and after.nonfinite:
        found.append(Turn(what="weights", before=before, after=after, text=f"{after.nonfinite:,} weights became non-finite"))
    if before.nonfinite_moments == 0 and after.nonfinite_moments:
        found.append(Turn(what="moments", before=before, after=after, text=f"{after.nonfinite_moments:,} optimizer moments became non-finite"))
    for what, old, new in (("largest weight", before.amax, after.amax), ("largest second moment", before.second_moment, after.second_moment)):
        if old and new and new > _JUMP * old:
            found.append(Turn(what=what, before=before, after=after, text=f"the {what} went from {old:.3g} to {new:.3g}"))
    if before.zeros is not None and after.zeros is not None and after.zeros > before.zeros + 0.1:
        found.append(
            Turn(what="zeros", before=before, after=after, text=f"the share of zero weights went from {before.zeros:.1%} to {after.zeros:.1%}")
        )
    if before.scale and after.scale is not None and after.scale < before.scale / _JUMP:
        found.append(Turn(what="loss scale", before=before, after=after, text=f"the loss scale fell from {before.scale:g} to {after.scale:g}"))
    if before.optimizer_step is not None and before.optimizer_step == after.optimizer_step and after.step > before.step:
        text = f"the optimizer took no step in {after.step - before.step} steps"
        found.append(Turn(what="optimizer step", before=before, after=after, text=text))
    return found
