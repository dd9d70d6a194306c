"""Optimizer state that is not finite while the weights are.

What it looks for
At the end of a run without a failing step: state (a sum or an average of squares) that holds infinity or NaN.

Why training breaks
Divided by an infinite second moment every update is 0: these weights have stopped for good. In fp16 a sum of squares passes 65504 early.

When it is fine
Never.

How to confirm
EXP602: with fp32 weights and state the run moves on.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import differs_by_chance


def check(recording: Recording) -> Iterator[Hit]:
    """The first such state."""
    if not recording.bad_state:
        return
    name, key, dtype, kind = recording.bad_state[0]
    more = f" (and {len(recording.bad_state) - 1} more)" if len(recording.bad_state) > 1 else ""
    low = dtype in ("float16", "bfloat16")
    yield Hit(
        message=f"the optimizer's {key} of {name}{more} holds {kind} in {dtype}: these weights do not move any more",
        cause="low-precision-state" if low else "model-numerics",
        confidence=Confidence.LOW if differs_by_chance(recording) else None,
    )


RULE = Rule(code="RUN408", severity=Severity.ERROR, cause="low-precision-state", check=check)
