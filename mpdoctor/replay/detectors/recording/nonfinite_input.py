"""The batch holds NaN or infinity.

What it looks for
The first bad value of the chain arrived with the batch.

Why training breaks
One NaN in one row makes the loss NaN, and with it every weight, at the next step.

When it is fine
A mask of -inf that softmax consumes.

How to confirm
EXP401 and EXP402: without the batch, and without the rows that carry it, the run does not fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The origin, when it is an input."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is not None and origin.site.phase is Phase.INPUT:
        yield Hit(message=f"{origin.why}, in the batch of step {origin.site.step}", at=origin.site)


RULE = Rule(code="RUN103", severity=Severity.ERROR, cause="dirty-data", check=check)
