"""A 16-bit tensor does not take its updates by hand.

What it looks for
An in-place update outside the optimizer (a moving average of the weights, a parameter update by hand) that leaves more than 80 % of a
16-bit tensor as it was.

Why training breaks
An average with a decay of 0.999 changes by a thousandth of the difference; bf16 rounds away everything below 1/512 of the value.

When it is fine
The average has arrived: there is nothing to change.

How to confirm
Keep the average in fp32 and compare.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import absorbed_updates


def check(recording: Recording) -> Iterator[Hit]:
    """The first such tensor."""
    found = absorbed_updates(recording)
    if found:
        worst = max(found, key=lambda a: a.share)
        place = f" ({worst.source})" if worst.source else ""
        yield Hit(message=f"{worst.name} in {worst.dtype}: {worst.op} changes nothing in {worst.share:.0%} of the elements that should change{place}")


RULE = Rule(code="RUN405", severity=Severity.ERROR, cause="low-precision-state", check=check)
