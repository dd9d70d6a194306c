"""Buffers keep a bad value that the weights were spared.

What it looks for
Buffers (BatchNorm's running statistics) that became non-finite in a step whose weight update was skipped.

Why training breaks
GradScaler skips the optimizer, not the forward pass: the running mean of one overflowed batch stays NaN. Training looks fine, evaluation is
NaN.

When it is fine
Never; recompute or restore the statistics.

How to confirm
Load the model in eval mode; the experiments of the origin's own cause tell why the batch overflowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.location import Phase, TensorSite
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording


def check(recording: Recording) -> Iterator[Hit]:
    """The first step that leaves a buffer non-finite."""
    for step in recording.steps:
        if step.nonfinite_buffers:
            names = ", ".join(step.nonfinite_buffers[:3])
            spared = "; the weights were spared (the step was skipped), the buffers were not" if step.skipped else ""
            site = TensorSite(step=step.step, phase=Phase.BUFFER, module=step.nonfinite_buffers[0], op="buffer", tensor=step.nonfinite_buffers[0])
            yield Hit(message=f"step {step.step} left {names} non-finite{spared}", at=site)
            return


RULE = Rule(code="RUN106", severity=Severity.WARNING, check=check)
