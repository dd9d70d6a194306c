"""Gradients are exactly zero, in fp32 too.

What it looks for
Parameters that the forward pass reads, at least half of all that train, whose gradient is exactly 0 in every traced step although nothing
underflows.

Why training breaks
A factor of the gradient is exactly 0: units that are never active (a ReLU behind a large negative bias), or two factors of a product that
both start at zero.

When it is fine
One of two factors starts at zero (a fresh LoRA adapter): then only the other one has no gradient, and only in the first step.

How to confirm
Look at the activations of the named module: they are constant.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import dead_parameters, swallowed


def check(recording: Recording) -> Iterator[Hit]:
    """Parameters that cannot learn."""
    names = dead_parameters(recording)
    cut = dict(recording.trace.cut_by) if recording.trace else {}
    if names and all(n in cut for n in names):
        op = cut[names[0]]
        yield Hit(
            message=f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: the gradient is exactly 0 in every step, because "
            f"{op}() stands between them and the loss, and its derivative is 0 everywhere",
            cause="training-loop",
            remedy=Remedy(text=f"Pass the gradient straight through {op}: x + ({op}(x) - x).detach()."),
        )
    elif names and swallowed(recording) is None:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        why = "nothing underflows: units are never active, or a factor is 0"
        yield Hit(message=f"{names[0]}{more}: the gradient is exactly 0 from the first step on, and {why}")


RULE = Rule(code="RUN305", severity=Severity.ERROR, cause="initialisation", check=check)
