"""An overflow hides in a division.

What it looks for
All gradients, or those of most parameters, are exactly 0, and in the forward pass a 16-bit result became infinite though its exact value
is finite.

Why training breaks
x / inf is 0, and so is its derivative: a mean square, a norm or a count that overflows fp16 turns what is divided by it into zeros. Nothing
is NaN, and nothing learns.

When it is fine
The infinity reaches nothing that is trained.

How to confirm
Compute that one value in fp32 (x.float()), or in bf16.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import swallowed


def check(recording: Recording) -> Iterator[Hit]:
    """The overflow."""
    origin = swallowed(recording)
    if origin is not None:
        where = f" in {origin.site.module}" if origin.site.module else ""
        yield Hit(
            message=f"{origin.dtype} overflow{where}: {origin.why}; what is divided by it is 0, and so are the gradients",
            at=origin.site,
            remedy=Remedy(text=f"Compute {(origin.site.op or '').removeprefix('aten.')}{where} in fp32."),
        )


RULE = Rule(code="RUN109", severity=Severity.ERROR, cause="fp16-range", check=check)
