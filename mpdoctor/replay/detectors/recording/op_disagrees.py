"""An op disagrees with itself.

What it looks for
The op that made the first bad value was run again, alone, on the same inputs. In fp64 its result is finite, fits the format, and no input
is large or small enough for anything inside the op to leave fp32 (a wrong kernel); or in its own dtype it is finite this time (a fault that
comes and goes).

Why training breaks
A fused or custom kernel that leaves elements unwritten, reads beyond its input or is wrong for one shape or layout makes NaN of good
numbers; so does a device that fails now and then.

When it is fine
The op draws random numbers, or keeps a state of its own.

How to confirm
EXP304: with this one result made finite the step does not fail. Run the op on contiguous inputs, with the reference implementation in place
of the fused one, and on another device.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The origin, when the op and not its inputs are to blame."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is None or origin.mechanism not in ("wrong-result", "unstable"):
        return
    name = (origin.site.op or "").removeprefix("aten.")
    where = f" in {origin.site.module}" if origin.site.module else ""
    yield Hit(
        message=f"{name}{where}: {origin.why}",
        at=origin.site,
        cause="kernel" if origin.mechanism == "wrong-result" else "hardware",
        remedy=Remedy(text=f"Replace {name} by its reference implementation (or give it contiguous inputs, or another version of its library).")
        if origin.mechanism == "wrong-result"
        else None,
    )


RULE = Rule(code="RUN603", severity=Severity.ERROR, check=check)
