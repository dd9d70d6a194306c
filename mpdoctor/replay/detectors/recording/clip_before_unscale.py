"""Gradients are clipped while they carry the loss scale.

What it looks for
clip_grad_norm_ or clip_grad_value_ that cut gradients before scaler.unscale_.

Why training breaks
The limit is compared with gradients times the scale: the gradients that remain are limit / scale, and training crawls.

When it is fine
The norm was below the limit in spite of the scale.

How to confirm
EXP501: with unscale_ first the gradients keep their size.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import clipped_scaled


def check(recording: Recording) -> Iterator[Hit]:
    """The first clipping of scaled gradients."""
    found = clipped_scaled(recording)
    if found is None:
        return
    step, norm, scale = found
    call = next(c for c in step.clip_calls if c.scale == scale)
    yield Hit(
        message=f"clipping to {call.limit:g} before scaler.unscale_: the true norm is {norm / scale:.4g}, "
        f"the optimizer gets {call.limit / scale:.3g}",
        at=TensorSite(step=step.step, phase=Phase.UNSCALE, op="clip_grad_norm_", source=call.source),
        remedy=Remedy(text="Call scaler.unscale_(optimizer) before clipping."),
    )


RULE = Rule(code="RUN501", severity=Severity.ERROR, cause="training-loop", check=check)
