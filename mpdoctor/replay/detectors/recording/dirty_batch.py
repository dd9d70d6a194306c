"""The failing batch holds what no precision could train on.

What it looks for
In the failing batch: only ignored labels, a sample in which everything is masked, values a thousand times the other batches', empty
tensors.

Why training breaks
The mean over no label is 0/0, softmax over a fully masked row is 0/0, and an input of 1e5 passes fp16's range in the first layer.

When it is fine
The other batches fail in the same way: then it is not this batch.

How to confirm
EXP401: without the batch the run goes on; EXP402 names the smallest set of rows that fails alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """Facts about the failing batch."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if recording.failing_step is None:
        return
    rows = f" (row {', '.join(map(str, origin.rows))})" if origin is not None and origin.rows else ""
    for fact in recording.row_facts:
        # An outlier explains an overflow, not an undefined operation.
        outlier = "times the largest of the" in fact
        if outlier and (origin is None or "overflow" not in origin.mechanism):
            continue
        yield Hit(
            message=f"batch of step {recording.failing_step}: {fact}",
            at=origin.site if origin else None,
            confidence=Confidence.MEDIUM if outlier and not recording.row_facts_name_rows else Confidence.HIGH,
        )
    if origin is not None and origin.mechanism == "masked-row" and origin.rows and origin.whole_rows:
        yield Hit(
            message=f"batch of step {recording.failing_step}: in row {', '.join(map(str, origin.rows))} everything is masked (an empty sample)",
            at=origin.site,
        )
    elif origin is not None and origin.mechanism == "impossible-target":
        yield Hit(message=f"batch of step {recording.failing_step}: {origin.why}", at=origin.site)
    elif origin is not None and 0 < len(origin.rows) <= 4 and not recording.row_facts:
        yield Hit(message=f"only some rows of the batch carry the bad value{rows}", at=origin.site, confidence=Confidence.LOW, severity=Severity.INFO)


RULE = Rule(code="RUN107", severity=Severity.ERROR, cause="dirty-data", check=check)
