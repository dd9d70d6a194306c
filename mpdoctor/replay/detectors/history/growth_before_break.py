"""Loss or gradient norm grew from row to row until something broke.

What it looks for
A loss or gradient norm that grew by a factor of three or more over the last rows before the break, or to the end of the log; or a loss
that ended half as large again as it began.

Why training breaks
Steps that overshoot land where the gradient is larger, and the next step overshoots further: growth by a factor per step. Whatever format
the run uses, its range ends some steps later.

When it is fine
A spike that comes back. Data whose loss differs from part to part (curriculum, shuffled domains) does not grow row by row.

Example
`the gradient norm grew from 1.2 to 5.3e+04 between step 3 and step 11`

Instead
Lower the learning rate (start with a tenth), warm up over some hundred steps, clip the gradient norm at 1.0.

How to confirm
The experiments "lr x 0.5" and "lr x 0.1" of `mpdoctor replay`.

References
J. Cohen et al.: Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability (2021).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, logged

_STRONG = 10.0


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit; sure only when the growth is large, and ends in the break or is the loss's own."""
    assert evidence.history is not None
    history, facts = evidence.history, evidence.history.facts
    change = facts.growth or facts.diverged
    if change is None:
        return
    broke = facts.broken_from is not None
    ending = f", and the log is bad from step {facts.broken_from} on" if broke else ""
    text = f"the {change.what} grew from {change.before:.3g} to {change.after:.3g} between step {change.from_step} and step {change.to_step}{ending}"
    details = [logged(text)]
    if facts.lr_at_break is not None:
        details.append(logged(f"the learning rate at the break is {facts.lr_at_break:.3g}"))
    sure = facts.growth is not None and change.factor >= _STRONG and (broke or change.what == "loss")
    confidence = Confidence.HIGH if sure else Confidence.MEDIUM if broke or facts.diverged is not None else Confidence.LOW
    yield Hit(message=text, at=at(history.path, f"step {change.to_step}"), evidence=tuple(details), confidence=confidence)


RULE: Rule[CheckpointEvidence] = Rule(code="RUN802", severity=Severity.WARNING, cause="learning-rate", needs=("history",), check=check)
