"""The batch of the failing step is left out; the batches after it run from the same state.

What it proves: if the others pass, it is this batch; if they fail too, it is not.
When it misleads: when no batch follows, only the batches before it can be compared.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, OTHER, SAME, Experiment, Judgement, Lab, failing, first

_FURTHER = 3
"""Batches after the failing one that must pass."""


def obstacle(lab: Lab) -> str | None:
    """Needs another batch to compare with."""
    return first(failing(lab), None if len(lab.investigation.batches) > 1 else "there is only one batch")


def perform(lab: Lab) -> Judgement:
    """Run without it, a few batches further."""
    at = lab.last
    result = lab.run(Changes(without_batches=frozenset([at])), until=at + _FURTHER)
    failure = lab.failure_in(result)
    after = [s for s in result.steps if s.step > at]
    skipped = [s for s in after if s.skipped]
    if failure is not None or (after and len(skipped) == len(after)):
        return SAME, f"other batches fail too: {failure[1]}" if failure is not None else "the steps after it are skipped too"
    if not after and at == lab.investigation.first_step:
        return OTHER, "no other batch ran"
    return GONE, f"the {len(after)} batches after it pass" if after else "the batches before it pass; none follows"


EXPERIMENT = Experiment(
    id="EXP401",
    changes="the failing batch left out",
    causes=("dirty-data",),
    obstacle=obstacle,
    perform=perform,
)
