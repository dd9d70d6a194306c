"""A finite value exceeds fp16's range.

What it looks for
The first bad value of the chain that ends in the loss, a gradient or a buffer was made by an op in fp16 whose exact result is finite.

Why training breaks
fp16 ends at 65504; above it is infinity, and the next subtraction or normalisation makes NaN of it. bf16 has fp32's range.

When it is fine
The value grew from step to step because the learning rate is too high: then the overflow is the end of that story.

How to confirm
The same step in bf16 (EXP301) and with the guilty module in fp32 (EXP303).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import growth, made_by_hand


def check(recording: Recording) -> Iterator[Hit]:
    """The origin, when it is an overflow of fp16 in the forward pass."""
    origin = recording.trace.origin if recording.trace and recording.failing_step is not None else None
    if origin is None or origin.dtype != "float16" or origin.mechanism not in ("overflow", "intermediate-overflow"):
        return
    by_hand = made_by_hand(origin)
    if origin.site.phase not in (Phase.FORWARD, Phase.LOSS) and recording.finite_at_scale_one is not False and not by_hand:
        return
    if origin.site.tensor is not None:  # a buffer of the model's own, kept in 16 bits
        return
    grown = growth(recording) or recording.weight_outliers or recording.origin_moved or not recording.baseline_fails
    where = f" in {origin.site.module}" if origin.site.module else (" where the loop itself works on the gradients" if by_hand else "")
    mask = origin.exact is not None and abs(origin.exact) < 1.1 * 65504 and origin.kind == "-inf"
    if mask:
        # finfo(float16).min plus any score below -16 is -inf: the mask is at fault as much as the range.
        yield Hit(
            message=f"a mask of about finfo(float16).min was added to a score{where}: {origin.why}",
            at=origin.site,
            cause="model-numerics",
            confidence=Confidence.MEDIUM,
        )
    yield Hit(
        message=f"fp16 overflow{where}: {origin.why}",
        at=origin.site,
        confidence=Confidence.LOW if grown else Confidence.HIGH,
        severity=Severity.WARNING if grown else None,
        remedy=Remedy(text="Add the gradients up in fp32, or divide each of them before the sum.") if by_hand else None,
    )


RULE = Rule(code="RUN101", severity=Severity.ERROR, cause="fp16-range", check=check)
