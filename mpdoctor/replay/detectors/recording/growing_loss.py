"""Loss, gradients or weights grow from step to step.

What it looks for
The loss or the gradient norm at the failure is eight times its smallest value before and rose nearly all the way, or the norm of all
weights tripled; or a run that stays finite ends with a loss ten times that of its start.

Why training breaks
Steps that are too large overshoot, land where the gradient is larger, and overshoot further, until a format's range ends.

When it is fine
One hard batch makes the loss jump and it recovers; a warm-up from a small rate.

How to confirm
EXP102: with a tenth of the learning rate the same steps do not fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import differs_by_chance, diverging, eps_alone, growth, scale_left_in


def check(recording: Recording) -> Iterator[Hit]:
    """Growth that ends in the failure, or in a loss far above its start."""
    first = recording.steps[0].step if recording.steps else 0
    if recording.failing_step is not None and recording.failing_step == first:
        return
    grown = growth(recording) if recording.failing_step is not None else diverging(recording)
    if grown is None:
        return
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    arrived = origin is not None and (origin.site.phase in (Phase.INPUT, Phase.PARAMETER) or bool(recording.row_facts))
    by_chance = recording.failing_step is None and differs_by_chance(recording) is not None
    arrived = arrived or by_chance or bool(eps_alone(recording) or scale_left_in(recording) or recording.drifted)
    rate = next((s.lr for s in recording.steps if s.lr is not None), None)
    yield Hit(
        message=f"{grown}" + (f", at a learning rate of {rate:g}" if rate is not None else ""),
        at=origin.site if origin else None,
        confidence=Confidence.LOW if arrived else Confidence.HIGH,
        severity=Severity.WARNING if arrived else None,
    )


RULE = Rule(code="RUN201", severity=Severity.ERROR, cause="learning-rate", check=check)
