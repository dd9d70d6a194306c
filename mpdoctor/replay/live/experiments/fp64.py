"""Weights, batches and casts are fp64 in place of fp32 and 16 bits.

What it proves: an operation that is undefined at its values in fp32 and not in fp64 met a value that rounding had made: a difference
of nearly equal numbers (cancellation), not the formula itself.
When it misleads: fp64 only moves the edge; with other values the same formula cancels again.
"""

from __future__ import annotations

import torch

from mpdoctor.replay.live.changes import Changes
from mpdoctor.replay.live.experiment import GONE, NOT_RUN, Experiment, Judgement, Lab, failing, first


def obstacle(lab: Lab) -> str | None:
    """Needs an operation that is undefined at the values that it met."""
    trace = lab.recording.trace
    origin = trace.origin if trace else None
    undefined = origin is not None and origin.mechanism == "undefined" and lab.has("RUN102")
    return first(failing(lab), None if undefined else "no operation is undefined at its values")


def perform(lab: Lab) -> Judgement:
    """Run up to the failing step in fp64."""
    result = lab.run(Changes(compute_dtype=torch.float64))
    if result.exception is not None:
        return NOT_RUN, f"the code does not run in fp64 ({result.exception.type})"
    outcome, words = lab.judged(result)
    if outcome is GONE:
        words += ": rounding made the value that the operation cannot take (cancellation, or a constant that rounds to 0)"
    return outcome, words


EXPERIMENT = Experiment(
    id="EXP306",
    changes="fp64 in place of fp32",
    causes=("model-numerics",),
    decisive=False,
    obstacle=obstacle,
    perform=perform,
)
