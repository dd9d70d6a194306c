"""The optimizer's update is taken back within the step.

What it looks for
The weights after the optimizer's step and at the end of the training step: more than 95 % of the update is gone again.

Why training breaks
Averaged weights that are swapped in and never swapped back, weights that are clamped to next to nothing or loaded anew after each step: the
optimizer works, and the run goes nowhere.

When it is fine
Never over several steps. Masks for pruning and weight clipping take back a part only.

How to confirm
Compare a weight before optimizer.step(), after it, and at the start of the next step.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import update_undone


def check(recording: Recording) -> Iterator[Hit]:
    """How much of the update is gone."""
    share = update_undone(recording)
    if share is not None:
        yield Hit(
            message=f"{min(1.0, share):.0%} of the optimizer's update is gone again when the step is over: "
            "something after optimizer.step() overwrites the weights",
            remedy=Remedy(text="Keep what writes the weights after optimizer.step() (averaged weights swapped in, a clamp, a reload) off them."),
        )


RULE = Rule(code="RUN513", severity=Severity.ERROR, cause="training-loop", check=check)
