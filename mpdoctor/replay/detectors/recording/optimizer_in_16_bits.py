"""The optimizer's own arithmetic in 16 bits makes the bad value.

What it looks for
The first bad value was made inside optimizer.step, in fp16 or bf16.

Why training breaks
Adam's eps of 1e-8 is 0 in fp16 and the square of a small gradient is 0 too: a row without gradient gives 0/0 = NaN, a small gradient m/0 =
infinity.

When it is fine
eps of 1e-4 with fp16 state, or fp32 state.

How to confirm
EXP601 (eps 1e-6) and EXP602 (fp32 master weights).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The origin, when it lies in the optimizer and in 16 bits."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is not None and origin.site.phase is Phase.OPTIMIZER and origin.dtype in ("float16", "bfloat16"):
        yield Hit(message=f"{origin.site.op} on {origin.site.module} in {origin.dtype}: {origin.why}", at=origin.site)


RULE = Rule(code="RUN402", severity=Severity.ERROR, cause="low-precision-state", check=check)
