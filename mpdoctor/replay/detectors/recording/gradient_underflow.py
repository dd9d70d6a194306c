"""fp16 flushes gradients to zero.

What it looks for
The gradient norm of the step in fp32 is at least 1.25 times the norm that the run sees, in a run that computes in fp16.

Why training breaks
fp16's smallest number is 6e-8; gradients below half of that are exactly 0, and nothing is learned from them.

When it is fine
Gradients that are large enough need no scaling; bf16 and fp32 need none.

How to confirm
EXP201: with dynamic loss scaling the gradients are there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import underflows


def check(recording: Recording) -> Iterator[Hit]:
    """Gradients that fp32 has and the run has not."""
    if not underflows(recording):
        return
    gain, window, flushed = recording.scaling_gain or 1.0, recording.window, recording.flushed_share or 0.0
    scale = f"loss scale {window.used:g}" if recording.has_scaler and window is not None and window.used is not None else "no loss scaling"
    lost = (
        "all gradients are exactly 0"
        if math.isinf(gain)
        else f"{flushed:.0%} of the gradient elements are flushed to 0 (norm {1 / gain:.0%} of fp32's)"
    )
    need = f"; a scale of at least {window.low:g} is needed" if window is not None else ""
    yield Hit(message=f"fp16 with {scale}: {lost}{need}")


RULE = Rule(code="RUN302", severity=Severity.ERROR, cause="loss-scaling", check=check)
