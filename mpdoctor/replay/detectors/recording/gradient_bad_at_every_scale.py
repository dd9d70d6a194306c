"""The gradients are bad at loss scale 1 too.

What it looks for
A step that the scaler skips and whose gradients are not finite at scale 1 either.

Why training breaks
No loss scale can help: the scaler halves for ever and takes no step. The fault is an operation, not the scale.

When it is fine
Never; but it is no reason to touch the scaling.

How to confirm
It was tried: the step ran at loss scale 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import dead_scale


def check(recording: Recording) -> Iterator[Exclusion]:
    """Rules loss scaling out."""
    if recording.finite_at_scale_one is False and dead_scale(recording) is None:
        text = f"the gradients of step {recording.failing_step} are not finite at loss scale 1 either"
        yield Exclusion(cause="loss-scaling", evidence=Evidence(text=text, kind=EvidenceKind.TRACE))


RULE = Rule(code="RUN304", severity=Severity.INFO, cause="loss-scaling", check=check)
