"""Gradients are divided by a loss scale that they never got.

What it looks for
A backward pass from the unscaled loss, followed by scaler.unscale_ or scaler.step.

Why training breaks
The update is as many times too small as the scale is large, and fp16 gradients underflow as without a scaler.

When it is fine
Never.

How to confirm
Call scaler.scale(loss).backward().
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import scale_left_out


def check(recording: Recording) -> Iterator[Hit]:
    """The first such step."""
    found = scale_left_out(recording)
    if found:
        yield Hit(
            message=f"backward starts from the unscaled loss, and the scaler divides the gradients by {found[0].scale_not_applied:g} "
            f"(step {found[0].step})",
            remedy=Remedy(text="Call scaler.scale(loss).backward()."),
        )


RULE = Rule(code="RUN509", severity=Severity.ERROR, cause="training-loop", check=check)
