"""Non-finite elements of the one op that made the first bad value are replaced by 1; nothing else changes.

What it proves: if the step then does not fail, this op is the only origin.
When it misleads: it is a proof of place, not a cure.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes, OpOfStep
from mpdoctor.replay.live.events import Event
from mpdoctor.replay.live.experiment import Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs an op as origin."""
    return first(
        failing(lab),
        None if _guilty_op(lab) is not None else "the first bad value was not made by an op of this step",
        None if lab.has("RUN102", "RUN603") else "no unsafe operation was seen",
    )


def perform(lab: Lab) -> Judgement:
    """Run the failing step with this op's result made finite."""
    event = _guilty_op(lab)
    op = OpOfStep(lab.last, event.n - 1, event.optimizer_ops) if event is not None else None
    return lab.judged(lab.run(Changes(finite_op=op)))


def _guilty_op(lab: Lab) -> Event | None:
    origin = lab.investigation.origin
    return origin.root if origin is not None and isinstance(origin.root, Event) and origin.root.created else None


EXPERIMENT = Experiment(
    id="EXP304",
    changes="the guilty op's result made finite",
    causes=("model-numerics", "kernel"),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
