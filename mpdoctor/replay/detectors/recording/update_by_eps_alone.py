"""Adam divides by eps alone.

What it looks for
16-bit second moments that are 0 where the first moments are not, and an update more than ten times the learning rate.

Why training breaks
Adam's step is about the learning rate long, because it divides by the root of the second moment. Squares of small gradients are 0 in fp16;
the gradient is then divided by eps.

When it is fine
eps is large enough (1e-4 with fp16 state) for the update to stay small.

How to confirm
EXP602: with fp32 state the updates have their size.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import eps_alone


def check(recording: Recording) -> Iterator[Hit]:
    """The parameter that is thrown farthest."""
    found = eps_alone(recording)
    if found:
        worst = max(found, key=lambda t: t.update_amax or 0.0)
        rate = next((s.lr for s in recording.steps if s.lr), 0.0)
        yield Hit(
            message=f"{worst.name}: {worst.moment_zero_share:.0%} of the second moments are 0 ({', '.join(sorted(set(worst.moments.values())))}) "
            "where the first are not; "
            f"a step moves it by {worst.update_amax:.3g}, "
            f"{(worst.update_amax or 0.0) / rate:.3g} times the learning rate",
            remedy=None
            if worst.dtype in ("float16", "bfloat16")
            else Remedy(text="Keep second moments so that small ones do not become 0 (fp32, or block-wise 8 bits with a floor), or raise eps."),
        )


RULE = Rule(code="RUN407", severity=Severity.ERROR, cause="low-precision-state", check=check)
