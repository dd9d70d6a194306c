"""Autocast is off, and casts, weights and constants that ask for 16 bits get fp32.

What it proves: a failure that stays in fp32 is no matter of precision.
When it misleads: fp32 hides every fault of 16 bits at once; it does not say which.
"""

from __future__ import annotations

import torch

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, SAME, Experiment, Judgement, Lab
from mpdoctor.replay.live.measurements import TraceCollector
from mpdoctor.replay.live.training_loop import Tracing, run
from mpdoctor.replay.observations import lossy_accumulations


def obstacle(lab: Lab) -> str | None:
    """Needs 16 bits somewhere, and a failure that fp32 could cure."""
    if lossy_accumulations(lab.recording):
        return None
    if not lab.recording.compute_dtypes:
        return "the run computes in fp32"
    return None if lab.recording.failing_step is not None else "no step fails"


def perform(lab: Lab) -> Judgement:
    """Run up to the failing step in fp32; for a lossy sum, compare the sums again."""
    changes = Changes(compute_dtype=torch.float32)
    if lab.recording.failing_step is not None:
        return lab.judged(lab.run(changes))
    at = max(lab.recording.traces)
    collector = TraceCollector()
    run(lab.investigation.source, changes=changes, until=at, tracing=Tracing(frozenset([at]), collector.done), deadline=lab.deadline)
    trace = collector.traces.get(at)
    worst = max((a.relative_error for a in trace.accumulations), default=0.0) if trace else 0.0
    return (GONE if worst < 0.01 else SAME), f"the sum is {worst:.1%} off"


EXPERIMENT = Experiment(
    id="EXP302",
    changes="fp32 in place of 16 bits",
    causes=("fp16-range", "low-precision-state"),
    obstacle=obstacle,
    perform=perform,
)
