"""A bad gradient is kept for ever.

What it looks for
Steps with a finite loss that start with the NaN gradient of an earlier step.

Why training breaks
zero_grad is skipped together with the optimizer step: the NaN stays in .grad, everything that is added to it is NaN, and no step is ever
taken again.

When it is fine
Never.

How to confirm
EXP502: with gradients cleared after a bad step training goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import stale_gradients


def check(recording: Recording) -> Iterator[Hit]:
    """Steps that start with an old NaN."""
    found = stale_gradients(recording)
    if found:
        yield Hit(
            message=f"from step {found[0].step} on {len(found)} steps with a finite loss start with the non-finite gradient of an earlier step: "
            "zero_grad is skipped together with the optimizer step",
            remedy=Remedy(text="Call zero_grad whether or not the step is taken."),
        )


RULE = Rule(code="RUN503", severity=Severity.ERROR, cause="training-loop", check=check)
