"""The failing batch runs with some of its rows only; bisection finds the smallest set that still fails.

What it proves: rows that fail alone, in a batch that passes without them, are bad samples.
When it misleads: losses that compare the rows of a batch (contrastive, BatchNorm) change with every row that is left out.
"""

from __future__ import annotations

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, NOT_RUN, SAME, Experiment, Judgement, Lab, failing, first
from mpdoctor.replay.live.rows import batch_size

_MAX_RUNS = 14
"""Runs that the bisection may take: enough for one bad row among 4096."""


def obstacle(lab: Lab) -> str | None:
    """Needs a batch of several rows that is suspected."""
    cleared = any(r.id == "EXP401" and r.outcome is SAME for r in lab.results)
    size = _size(lab)
    return first(
        failing(lab),
        "other batches fail too" if cleared and not lab.recording.row_facts_name_rows else None,
        None if any(f.cause == "dirty-data" for f in lab.findings) else "nothing points to single rows",
        None if size is not None and size > 1 else "the batch has no rows to leave out",
    )


def perform(lab: Lab) -> Judgement:
    """Try the rows that carry the bad value; otherwise bisect."""
    size = _size(lab) or 0
    every = tuple(range(size))
    runs = 0

    def fails(rows: tuple[int, ...]) -> bool:
        nonlocal runs
        runs += 1
        return bool(rows) and lab.failure_in(lab.run(Changes(rows_kept={lab.last: rows}))) is not None

    rows = lab.recording.rows or every
    while len(rows) > 1 and not (rows == lab.recording.rows and len(rows) <= 8) and runs < _MAX_RUNS:
        half = len(rows) // 2
        left, right = rows[:half], rows[half:]
        if fails(left):
            rows = left
        elif fails(right):
            rows = right
        else:
            break
    if len(rows) == size:
        return NOT_RUN, "no smaller set of rows fails alone"
    rest = tuple(r for r in every if r not in rows)
    alone, without = fails(rows), fails(rest)
    named = f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}"
    lines = [line for line in (lab.investigation.source.line_of_row(lab.last, r) for r in rows) if line]
    if lines:
        named += f" ({', '.join(lines)})"
    if not without:
        lab.rows = rows
        s = "s" if len(rows) == 1 else ""
        does = f"alone fail{s}" if alone else f"carr{'ies' if s else 'y'} it"
        return GONE, f"{named} {does}; the other {len(rest)} pass"
    return SAME, f"without {named} the batch still fails"


def _size(lab: Lab) -> int | None:
    batches = lab.investigation.batches
    number = lab.last - lab.investigation.first_step
    return batch_size(batches[number]) if 0 <= number < len(batches) else None


EXPERIMENT = Experiment(
    id="EXP402",
    changes="the failing rows left out (bisection)",
    causes=("dirty-data",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
