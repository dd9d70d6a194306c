"""The loss scale never comes to rest.

What it looks for
More than a third of the steps in the later half of the run are skipped, though their gradients are finite at a smaller scale.

Why training breaks
Each growth of the scale costs a skipped step. A scaler that grows after every few steps, or by more than its backoff takes back, throws a
large part of the data away.

When it is fine
The search at the start: a dozen skipped steps in a row, then none.

How to confirm
EXP201: with the scaler's defaults (growth 2 after 2000 steps, backoff 0.5) the steps are taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import dead_scale, skips_too_often


def check(recording: Recording) -> Iterator[Hit]:
    """How many steps are lost."""
    skipped = skips_too_often(recording)
    if not skipped or dead_scale(recording) is not None:
        return
    scales = [s.scale for s in recording.steps if s.scale is not None]
    between = f"; the scale goes between {min(scales):g} and {max(scales):g}" if scales else ""
    yield Hit(
        message=f"the scaler skips {len(skipped)} of the last {len(recording.steps) - len(recording.steps) // 2} steps{between}",
        remedy=Remedy(text="Use the scaler's defaults (growth_factor 2, growth_interval 2000, backoff_factor 0.5)."),
    )


RULE = Rule(code="RUN306", severity=Severity.ERROR, cause="loss-scaling", check=check)
