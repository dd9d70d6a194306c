"""The loss scale has fallen to nothing.

What it looks for
A loss scale below 2^-10, or exactly 0.

Why training breaks
torch's GradScaler has no lower bound. At a tiny scale every fp16 gradient is 0; at 0 the first clean step divides 0 by 0 while unscaling
and writes NaN into all weights.

When it is fine
Never.

How to confirm
Look for what made the gradients bad in all the steps before: the scale fell because of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import dead_scale


def check(recording: Recording) -> Iterator[Hit]:
    """The step at which the scale is of no use any more."""
    step = dead_scale(recording)
    if step is None or step.scale is None:
        return
    zero = next((s for s in recording.steps if s.scale == 0.0), None)
    ruined = next((s for s in recording.steps if s.nonfinite_weights and zero is not None and s.step >= zero.step), None)
    at = ruined or zero or step
    text = f"the loss scale fell to {at.scale:g} by step {at.step}"
    if ruined is not None:
        text += f"; unscaling by 1/0 made NaN of {ruined.nonfinite_weights[0]} and {len(ruined.nonfinite_weights) - 1} other parameters"
    yield Hit(
        message=text, at=TensorSite(step=at.step, phase=Phase.UNSCALE, module=ruined.nonfinite_weights[0] if ruined else "", op="GradScaler.unscale_")
    )


RULE = Rule(code="RUN303", severity=Severity.ERROR, cause="loss-scaling", check=check)
