"""scaled_dot_product_attention runs its plain implementation in place of a fused one.

What it proves: if the failure is gone, the fused kernel is at fault for these shapes and values.
When it misleads: the math kernel treats fully masked rows in another way.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs a fused attention op as origin."""
    trace = lab.recording.trace
    op = trace.origin.site.op if trace and trace.origin else ""
    return first(failing(lab), None if op and ("scaled_dot_product" in op or "ScaledDotProduct" in op) else "no fused attention made the bad value")


def perform(lab: Lab) -> Judgement:
    """Run with the math kernel."""
    return lab.judged(lab.run(Changes(math_attention=True)))


EXPERIMENT = Experiment(
    id="EXP701",
    changes="attention by the math kernel",
    causes=("kernel",),
    obstacle=obstacle,
    perform=perform,
)
