"""The loss or gradient norm jumped far above the rows before it, and came back.

What it looks for
A loss more than three times, or a gradient norm more than ten times, the median of the 25 rows before it.

Why training breaks
It may not: runs recover from spikes. Each one has a reason, though: a broken batch, a learning rate at the edge, an Adam second moment
that forgot (beta2) or underflowed. Frequent spikes come before a break.

When it is fine
Single spikes early in training, and batches that are simply harder.

Example
`1 spike: the loss is 9.4 at step 310, 3.1 before`

Instead
Clip the gradient norm; look at the batch of that step.

How to confirm
`mpdoctor replay` on the checkpoint before the spike, with the data of those steps.

References
A. Chowdhery et al.: PaLM (2022), section 5.1, on spikes that depend on batch and state together.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit for all spikes, naming the highest."""
    assert evidence.history is not None
    spikes = evidence.history.facts.spikes
    if not spikes:
        return
    highest = max(spikes, key=lambda change: change.factor)
    count = "1 spike" if len(spikes) == 1 else f"{len(spikes)} spikes, the highest"
    text = f"{count}: the {highest.what} is {highest.after:.3g} at step {highest.to_step}, about {highest.before:.3g} before"
    details = tuple(logged(f"step {s.to_step}: {s.what} {s.after:.4g}, about {s.before:.4g} before") for s in spikes[:10])
    yield Hit(message=text, at=at(evidence.history.path, f"step {highest.to_step}"), evidence=details)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN806", severity=Severity.INFO, needs=("history",), check=check)
