"""16-bit weights do not take their updates.

What it looks for
Weights stored in 16 bits without fp32 masters, whose movement over the first steps is less than a quarter of what fp32 masters would have
taken.

Why training breaks
bf16 has 8 significant bits: an update below 1/512 of a weight rounds away, step after step. The gradients look healthy and nothing is
learned.

When it is fine
The optimizer keeps fp32 masters, rounds stochastically or compensates (Kahan); or the updates are large enough.

How to confirm
EXP602: with fp32 master weights the weights move.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import updates_lost


def check(recording: Recording) -> Iterator[Hit]:
    """How much of the intended update the stored weights took."""
    if not updates_lost(recording) or recording.update_kept is None:
        return
    changed = [t.changed_share for t in (recording.trace.tensors if recording.trace else ()) if t.changed_share is not None]
    share = f" ({sum(changed) / len(changed):.0%} of the elements with a gradient change in a step)" if changed else ""
    rate = next((s.lr for s in recording.steps if s.lr), None)
    yield Hit(
        message=f"weights in {recording.weights_dtype} take {max(0.0, recording.update_kept):.0%} of their updates{share}: "
        "the rest is below half their spacing"
        + (f" at a learning rate of {rate:g}" if rate else "")
        + (f"; half of them would be taken at {recording.lr_for_half:.2g}" if recording.lr_for_half is not None else "")
    )


RULE = Rule(code="RUN401", severity=Severity.ERROR, cause="low-precision-state", check=check)
