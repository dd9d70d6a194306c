"""The run computes in another precision than it asks for.

What it looks for
Fewer than half of the matrix-product and convolution FLOPs of a step run in the 16-bit precision that the run names.

Why training breaks
Autocast does not cover the forward pass, or modules were kept in fp32: memory and time are those of fp32.

When it is fine
Small layers kept in fp32 on purpose; losses and norms in fp32.

How to confirm
The FLOPs by dtype are measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import other_precision


def check(recording: Recording) -> Iterator[Hit]:
    """FLOPs by dtype against the precision asked for."""
    found = other_precision(recording)
    if found is not None:
        asked, share = found
        flops = recording.trace.flops if recording.trace else {}
        total = sum(flops.values())
        shares = ", ".join(f"{name} {value / total:.0%}" for name, value in sorted(flops.items(), key=lambda kv: -kv[1]))
        yield Hit(message=f"{asked} was asked for, but {share:.0%} of the matrix-product FLOPs run in 16 bits ({shares})")


RULE = Rule(code="RUN601", severity=Severity.ERROR, cause="slow-precision", check=check)
