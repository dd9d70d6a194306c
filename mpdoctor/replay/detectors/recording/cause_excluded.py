"""Facts that rule a cause out.

What it looks for
A failure in the first step (no step was taken before it), a run that does not compute in fp16, a value that was bad before any gradient
existed, other batches that fail too.

Why training breaks
It does not; these facts narrow the search.

When it is fine
Always.

How to confirm
They are facts of the recording.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import swallowed


def check(recording: Recording) -> Iterator[Exclusion]:
    """What cannot be the cause."""

    def excluded(cause: str, text: str) -> Exclusion:
        return Exclusion(cause=cause, evidence=Evidence(text=text, kind=EvidenceKind.TRACE))

    taken = [s for s in recording.steps if s.took_a_step and (recording.failing_step is None or s.step < recording.failing_step)]
    if recording.failing_step is not None and not taken:
        yield excluded("learning-rate", f"step {recording.failing_step} fails before any optimizer step was taken")
    if "float16" not in recording.compute_dtypes and not recording.has_scaler and swallowed(recording) is None:
        what = " and ".join(recording.compute_dtypes) or "float32"
        yield excluded("loss-scaling", f"the run computes in {what}, without a loss scale")
        yield excluded("fp16-range", f"the run does not compute in fp16 ({what})")
        return
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is not None and origin.site.phase in (Phase.INPUT, Phase.PARAMETER, Phase.FORWARD, Phase.LOSS):
        yield excluded("loss-scaling", f"the value is bad in the {origin.site.phase} phase already, before any gradient exists")
    if origin is not None and origin.dtype not in ("float16", ""):
        yield excluded("fp16-range", f"the first bad value is {origin.dtype}, not fp16")
    elif origin is not None and origin.site.phase in (Phase.INPUT, Phase.PARAMETER):
        yield excluded("fp16-range", "the value was bad when it arrived")


RULE = Rule(code="RUN901", severity=Severity.INFO, check=check)
