"""zero_grad is called after each optimizer step, and after each step whose gradients are bad.

What it proves: if old gradients were the fault, the run goes on.
When it misleads: a loop that accumulates on purpose loses what it had collected in the bad window.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, SAME, Experiment, Judgement, Lab


def obstacle(lab: Lab) -> str | None:
    """Needs gradients that were kept."""
    return None if lab.has("RUN502", "RUN503") else "no gradients were kept over steps"


def perform(lab: Lab) -> Judgement:
    """Run on; no step may start with an old bad gradient, or use an old one again."""
    last = lab.recording.steps[-1].step
    result = lab.run(Changes(cleared_gradients=True), until=last, after_failure=10_000)
    stale = [s for s in result.steps if s.stale_grads]
    twice = [s for s in result.steps if s.uncleared_grads]
    if stale or twice:
        return SAME, f"{len(stale) + len(twice)} steps still use old gradients"
    taken = sum(s.took_a_step for s in result.steps)
    return GONE, f"{taken} optimizer steps in {len(result.steps)} steps, against {sum(s.took_a_step for s in lab.recording.steps)} before"


EXPERIMENT = Experiment(
    id="EXP502",
    changes="gradients cleared after each step and each bad gradient",
    causes=("training-loop",),
    obstacle=obstacle,
    perform=perform,
)
