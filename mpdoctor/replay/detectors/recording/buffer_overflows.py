"""A buffer that is kept in 16 bits overflows.

What it looks for
The first bad value is an update of one of the model's own buffers in fp16 or bf16, and its exact value is finite.

Why training breaks
Running sums, counts and averages of squares grow with the run; in fp16 they end at 65504. Everything that is divided by them is 0 from
then on, and the buffer is saved with the model.

When it is fine
Never.

How to confirm
Keep the buffer in fp32 (register it so, or convert it back after model.half()).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The origin, when it lies in such a buffer."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is None or origin.site.tensor is None or origin.dtype not in ("float16", "bfloat16") or origin.mechanism != "overflow":
        return
    yield Hit(
        message=f"buffer {origin.site.tensor} is kept in {origin.dtype}: {origin.why}",
        at=origin.site,
        remedy=Remedy(text=f"Keep {origin.site.tensor} in fp32."),
    )


RULE = Rule(code="RUN409", severity=Severity.ERROR, cause="low-precision-state", check=check)
