"""A sum kept in 16 bits stops growing.

What it looks for
A 16-bit tensor that is added to many times in one step, and differs from the same sum in fp64 by more than 5 %.

Why training breaks
Once the sum is 256 times larger than its terms, bf16 rounds each addition away. 1024 micro-batch gradients lose half their sum.

When it is fine
Few additions: 256 give about 1 % error.

How to confirm
EXP302: in fp32 the sum is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import lossy_accumulations


def check(recording: Recording) -> Iterator[Hit]:
    """The worst sum."""
    found = sorted(lossy_accumulations(recording), key=lambda a: -a[3])
    if found:
        name, dtype, additions, error, place = found[0]
        yield Hit(message=f"{name} collects {additions} additions in {dtype} and is {error:.0%} off the exact sum" + (f" ({place})" if place else ""))


RULE = Rule(code="RUN404", severity=Severity.ERROR, cause="low-precision-state", check=check)
