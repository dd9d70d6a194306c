"""A parameter or buffer is bad before the first step.

What it looks for
NaN or infinity in a parameter, or NaN in a buffer, before any step was taken.

Why training breaks
A parameter that is NaN throughout was never given a value; infinities among good values come from a cast through a narrower dtype; NaN in
many parameters comes from a run that had already failed when it was saved.

When it is fine
A buffer of -inf that is a mask.

How to confirm
EXP305: with these values replaced by zeros the run does not fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """Parameters and buffers that arrived bad, told apart by what is in them."""
    bad = recording.initial_bad_parameters + recording.initial_bad_buffers
    if not bad:
        return
    origin = recording.trace.origin if recording.trace and recording.trace.origin else recording.initial_origin
    at_fault = origin is not None and origin.site.phase in (Phase.PARAMETER, Phase.BUFFER)
    first = recording.steps[0].step if recording.steps else 0
    site = (
        origin.site
        if origin is not None and at_fault
        else TensorSite(step=first, phase=Phase.PARAMETER, module=bad[0], op="parameter", tensor=bad[0])
    )
    # A tensor that is NaN in every element was never filled; one with a few bad values was filled, and damaged.
    never_filled = at_fault and origin is not None and origin.kind == "nan" and origin.share == 1.0 and len(bad) <= 4
    cause = "initialisation" if never_filled else "checkpoint"
    what = origin.why if origin is not None and at_fault else f"{bad[0]} is not finite before the first step"
    if cause == "checkpoint" and origin is not None and origin.kind != "nan":
        what += "; values outside a narrower dtype become infinite when they are cast through it"
    more = f"; {len(bad) - 1} more parameters or buffers are bad" if len(bad) > 1 else ""
    other = "checkpoint" if never_filled else "initialisation"
    yield Hit(message=f"{what}{more}, before any step was taken", at=site, cause=cause, confidence=Confidence.HIGH if at_fault else Confidence.MEDIUM)
    yield Hit(message=f"{bad[0]} is bad before any step was taken", at=site, cause=other, confidence=Confidence.LOW)


RULE = Rule(code="RUN104", severity=Severity.ERROR, check=check)
