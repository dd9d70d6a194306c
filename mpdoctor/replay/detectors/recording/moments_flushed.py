"""Loaded optimizer moments were flushed to zero.

What it looks for
Optimizer state that arrived in 16 bits with second moments of 0 where the first are not, and a loss that jumps in the next steps.

Why training breaks
Optimizer.load_state_dict casts the state to the parameter's dtype. exp_avg_sq of 1e-9 is 0 in fp16, and the step is divided by eps alone.

When it is fine
Parameters in fp32, or an optimizer that restores its state's dtype.

How to confirm
EXP602: with the state in fp32 the jump is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import moments_flushed


def check(recording: Recording) -> Iterator[Hit]:
    """Flushed moments and the jump that follows."""
    found = moments_flushed(recording)
    if found is None:
        return
    share, before, after = found
    dtype = recording.loaded_moments_dtype or recording.weights_dtype
    text = (
        f"{share:.0%} of the loaded second moments are 0 in {dtype} although the first moments are not; "
        f"the loss goes from {before:.4g} to {after:.4g}"
    )
    low = dtype in ("float16", "bfloat16")
    yield Hit(message=text, cause="low-precision-state" if low else "checkpoint")
    if low:
        yield Hit(message="the optimizer state was cast to the weights' dtype when it was loaded", cause="checkpoint", confidence=Confidence.LOW)


RULE = Rule(code="RUN403", severity=Severity.ERROR, cause="low-precision-state", check=check)
