"""An operation is undefined at the values that it met.

What it looks for
The op that made the first bad value was run again, alone, in fp64 on the same inputs, and is not finite there either; or it overflows fp32
or bf16.

Why training breaks
0/0, the logarithm of 0, the square root of a negative number, softmax over nothing, the mean of nothing, exp of a large number: no
precision helps.

When it is fine
The value reaches nothing that is trained (a deliberate mask, a metric).

How to confirm
EXP304: with this one result made finite the step does not fail; EXP302: in fp32 it still does.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import bad_learning_rate, growth, taken
from mpdoctor.replay.safe_forms import safe_form


def check(recording: Recording) -> Iterator[Hit]:
    """The origin, when the op itself is undefined, or overflows a format with fp32's range."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is None or origin.site.phase in (Phase.INPUT, Phase.PARAMETER, Phase.BUFFER, Phase.UNSCALE):
        return
    if origin.site.phase is Phase.OPTIMIZER and origin.dtype in ("float16", "bfloat16"):
        return
    wide_overflow = origin.mechanism in ("overflow", "intermediate-overflow") and origin.dtype != "float16"
    eps_vanished = origin.mechanism == "intermediate-overflow" and "is 0 in this dtype" in origin.why
    undefined = origin.mechanism in ("undefined", "masked-row", "empty-reduction", "impossible-target", "written")
    if not (wide_overflow or eps_vanished or undefined):
        return
    grown = growth(recording)
    confidence = Confidence.HIGH
    if origin.site.phase is Phase.OPTIMIZER and recording.loaded_state and not taken(recording):
        yield Hit(
            message=f"{origin.site.op} on {origin.site.module}: {origin.why}; the optimizer's state was loaded, and this is its first step",
            at=origin.site,
            cause="checkpoint",
        )
        return
    explained = grown or recording.weight_outliers or recording.drifted or any("times the largest of the" in fact for fact in recording.row_facts)
    if (wide_overflow and explained) or recording.origin_moved or not recording.baseline_fails or bad_learning_rate(recording):
        confidence = Confidence.LOW
    if origin.mechanism in ("empty-reduction", "impossible-target") or (origin.mechanism == "masked-row" and origin.whole_rows):
        confidence = Confidence.MEDIUM
    op = origin.site.op or ""
    place = ([] if origin.why.startswith(op.removeprefix("aten.")) else [op]) + ([f"in {origin.site.module}"] if origin.site.module else [])
    later = f"; it does harm in {origin.hurts_at.op} ({origin.hurts_at.phase})" if origin.hurts_at else ""
    yield Hit(
        message=f"{' '.join(place)}: {origin.why}{later}" if place else f"{origin.why}{later}",
        at=origin.site,
        confidence=confidence,
        severity=Severity.WARNING if confidence is Confidence.LOW else None,
        remedy=safe_form(origin),
    )


RULE = Rule(code="RUN102", severity=Severity.ERROR, cause="model-numerics", check=check)
