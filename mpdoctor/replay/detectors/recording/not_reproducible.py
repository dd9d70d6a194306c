"""The same step gives different results.

What it looks for
The repeated run, from the same state and seeds, differs in a loss, a gradient norm or the weights; or the failure does not come back, or
not at the same place.

Why training breaks
Unseeded data, a race in a kernel, or a device that makes errors: no experiment can be trusted before this is settled.

When it is fine
Non-deterministic kernels on a GPU differ in the last bits, and code may draw from a generator of its own; the failure must still come back.

How to confirm
Run the same step on another device; look at `mpdoctor gpu`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import differs_by_chance


def check(recording: Recording) -> Iterator[Hit]:
    """Whether the repeat agreed."""
    lost = recording.failing_step is not None and not recording.baseline_fails and (bool(recording.traces) or recording.deterministic is False)
    if lost:
        yield Hit(message=f"step {recording.failing_step} failed in the first run and not when it was repeated from the same state and seeds")
    elif recording.origin_moved:
        yield Hit(message=f"the same step fails at another place when it is repeated from the same state and seeds: {recording.origin_moved}")
    elif (chance := differs_by_chance(recording)) is not None:
        words = f"the repeated run differs, from the same state and seeds: {chance.what} {_number(chance.first)} and {_number(chance.again)}"
        damaged = bool(recording.bad_state)
        yield Hit(
            message=f"{words} in step {chance.step}",
            confidence=Confidence.HIGH if damaged else Confidence.LOW,
            severity=None if damaged else Severity.INFO,
        )
    elif recording.deterministic is False:
        yield Hit(message="the repeated run differs from the first in the last digits", confidence=Confidence.LOW, severity=Severity.INFO)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


RULE = Rule(code="RUN602", severity=Severity.ERROR, cause="hardware", check=check)
