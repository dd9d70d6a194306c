"""What a run's log shows: steps with NaN, losses that fell to zero, losses that stopped moving."""

from __future__ import annotations

import math
from typing import NamedTuple

from mpdoctor.check.sources.node import Node
from mpdoctor.check.subject import CheckSubject
from mpdoctor.core.location import FileSpan


class BrokenLog(NamedTuple):
    """The first step at which a log shows a broken run, what it shows, and where."""

    step: int | None
    what: str
    at: FileSpan


def broken_steps(run: CheckSubject) -> BrokenLog | None:
    """The first sign of a broken run in the log, or None.

    A gradient norm of NaN beside a finite loss that keeps moving is a skipped fp16 step, and normal.
    """
    for file in run.of("checkpoint_facts"):
        log = file.node("log_history")
        entries = [entry for entry in log.items if entry.get("loss") is not None] if log is not None else []
        bad = [entry for entry in entries if _broken(entry)]
        zero = _fell_to_zero(entries)
        if zero is not None and (not bad or (_step(zero) or 0) <= (_step(bad[0]) or 0)):
            return BrokenLog(_step(zero), "the loss is exactly 0", zero.span("log_history"))
        if bad and (len(bad) >= 2 or bad[0] is entries[-1]):
            return BrokenLog(_step(bad[0]), "loss or gradient norm is not finite", bad[0].span("log_history"))
    return None


def _broken(entry: Node) -> bool:
    loss, norm = _number(entry.get("loss")), _number(entry.get("grad_norm"))
    if loss is None:
        return False
    return not math.isfinite(loss) or (loss == 0.0 and norm is not None and not math.isfinite(norm))


def _fell_to_zero(entries: list[Node]) -> Node | None:
    """The entry at which the loss became exactly 0 for good, after it had not been."""
    losses = [_number(entry.get("loss")) for entry in entries]
    if len(losses) < 2 or losses[-1] != 0.0 or not any(losses):
        return None
    index = len(losses) - 1
    while index > 0 and losses[index - 1] == 0.0:
        index -= 1
    return entries[index] if index > 0 and len(losses) - index >= 2 else None


def _step(entry: Node) -> int | None:
    value = _number(entry.get("step"))
    return int(value) if value is not None and math.isfinite(value) else None


def _number(node: Node | None) -> float | None:
    """A number, also where it is written as text ("nan")."""
    if node is None or isinstance(node.value, (bool, dict, list)) or node.value is None:
        return None
    try:
        return float(node.value)
    except (ValueError, OverflowError):
        return None
