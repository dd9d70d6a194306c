"""The module whose op made the first bad value runs in fp32, with its inputs widened; everything else stays.

What it proves: the range of this module's values is the fault, and keeping it in fp32 is a cure.
When it misleads: the next module may overflow in its place.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs an fp16 overflow inside a named module."""
    trace = lab.recording.trace
    origin = trace.origin if trace else None
    return first(failing(lab), None if lab.has("RUN101") and origin is not None and origin.site.module else "no fp16 overflow inside a named module")


def perform(lab: Lab) -> Judgement:
    """Run up to the failing step with that module in fp32."""
    trace = lab.recording.trace
    name = trace.origin.site.module if trace and trace.origin else ""
    outcome, words = lab.judged(lab.run(Changes(fp32_modules=(name,))))
    return outcome, f"{name} in fp32: {words}"


EXPERIMENT = Experiment(
    id="EXP303",
    changes="the guilty module alone in fp32",
    causes=("fp16-range",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
