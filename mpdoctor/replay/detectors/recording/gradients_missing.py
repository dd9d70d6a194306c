"""Parameters that are used get no gradient.

What it looks for
Parameters of the optimizer that the forward pass reads and whose gradient is None in every step.

Why training breaks
Something cuts the graph: detach, no_grad, .data, or reentrant checkpointing over inputs that need no gradient. These parameters never
learn.

When it is fine
A parameter that is not used in a step, such as an expert without tokens.

How to confirm
EXP504: without reentrant checkpointing the gradients are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import always_missing


def check(recording: Recording) -> Iterator[Hit]:
    """Used parameters without gradient."""
    names = always_missing(recording)
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Hit(message=f"{names[0]}{more}: read by the forward pass, but the gradient is None in all {len(recording.steps)} steps")


RULE = Rule(code="RUN505", severity=Severity.ERROR, cause="training-loop", check=check)
