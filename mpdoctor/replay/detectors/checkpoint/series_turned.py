"""Somewhere in the run's checkpoints things turned: the first bad one, and the last good one to resume from.

What it looks for
In a folder of checkpoints: those with non-finite weights or optimizer state, with damaged files, or with a loss scale of 0; and sharp
changes from one to the next (largest weight, largest second moment, share of zeros, loss scale, an optimizer that stopped stepping).

Why training breaks
The checkpoint before the turn is the place to resume from and to replay: what broke the run happened between the two.

When it is fine
A largest weight that grows slowly; moments that rise with a warmup.

Example
`checkpoint-700 is the first bad checkpoint; the last good one to resume from is checkpoint-600`

Instead
Resume from the last good checkpoint with the cause removed.

How to confirm
`mpdoctor replay` on the last good checkpoint with the run's data.

References
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.cause import Exclusion
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.replay.autopsy.series import Point
from mpdoctor.replay.checkpoint_evidence import CheckpointEvidence, at, saw


def check(evidence: CheckpointEvidence) -> Iterator[Hit | Exclusion]:
    """One hit: an error when the newest checkpoint is bad, information about turns otherwise."""
    series = evidence.series
    if series is None:
        return
    facts = tuple(saw(f"{turn.after.path.name}: {turn.text} since {turn.before.path.name}", turn.after.path) for turn in series.turns[:10])
    if series.first_bad is not None:
        good = series.last_good
        resume = f"the last good one to resume from is {good.path.name}" if good else "no earlier one is good"
        text = f"{series.first_bad.path.name} is the first bad checkpoint ({_why(series.first_bad)}); {resume}"
        remedy = Remedy(text=f"Resume from {good.path.name} with the cause removed.") if good else None
        yield Hit(message=text, at=at(series.first_bad.path), evidence=(saw(text, series.first_bad.path), *facts), remedy=remedy)
    elif series.turns:
        turn = series.turns[-1]
        text = f"{turn.text} between {turn.before.path.name} and {turn.after.path.name}; all {len(series.points)} checkpoints are finite"
        yield Hit(message=text, at=at(turn.after.path), evidence=facts, severity=Severity.INFO, cause=None)


def _why(point: Point) -> str:
    if point.error is not None:
        return "it cannot be read"
    if point.nonfinite:
        return f"{point.nonfinite:,} non-finite weights"
    if point.nonfinite_moments:
        return f"{point.nonfinite_moments:,} non-finite optimizer moments"
    return f"{point.damaged} damaged files" if point.damaged else "its loss scale is 0"


RULE: Rule[CheckpointEvidence] = Rule(code="RUN722", severity=Severity.ERROR, needs=("checkpoint",), check=check)
