"""A single weight is out of all proportion.

What it looks for
Up to four elements of a parameter that are 1e8 times larger than all others (fp16: 1e4), just before the step that overflows; and whether
flipping one bit back makes them as large as the others.

Why training breaks
One flipped exponent bit turns 0.02 into 1e36: a memory error, or a file damaged on its way. The layer's output overflows, or drowns
everything else.

When it is fine
Outlier features that training grew: thousands of times, not a hundred million.

How to confirm
EXP307: with the value put right the step does not fail. Compare the tensor with another copy of the file; look at the device's ECC counters.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The largest such element."""
    if not recording.weight_outliers:
        return
    worst = max(recording.weight_outliers, key=lambda o: abs(o.value))
    since = "" if worst.at_start else ", and was not so large at the start of the run"
    text = f"{worst.place} is {worst.value:.4g}, all others of the tensor are at most {worst.usual:.3g}{since}"
    if worst.flipped_bit is not None:
        yield Hit(
            message=f"{text}: one flipped bit ({worst.flipped_bit}) makes it of {worst.restored:.4g}",
            cause="hardware",
            remedy=Remedy(text="Load the tensor again from a good copy, compare checksums, and look at the device's ECC counters (`mpdoctor gpu`)."),
        )
        yield Hit(message=f"{text}: the stored weights may be damaged", cause="checkpoint", confidence=Confidence.LOW)
    else:
        yield Hit(
            message=f"{text}: the weights are damaged",
            cause="checkpoint" if worst.at_start else "hardware",
            confidence=Confidence.HIGH if worst.at_start else Confidence.MEDIUM,
        )


RULE = Rule(code="RUN108", severity=Severity.ERROR, cause="hardware", check=check)
