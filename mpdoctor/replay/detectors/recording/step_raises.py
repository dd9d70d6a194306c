"""The step raises an exception.

What it looks for
An exception that leaves the training step, and what its message says about the numbers.

Why training breaks
A constant that fp16 cannot hold, a label outside the classes, fp16 gradients given to a GradScaler, and scaler calls in the wrong order all
raise.

When it is fine
The exception has nothing to do with precision or data; then no cause is named.

How to confirm
EXP301 and EXP302 run the step in other precisions, EXP401 without the batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.core.finding import Confidence, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording

_MESSAGES: tuple[tuple[str, str, str], ...] = (
    (r"cannot be converted to type .*(Half|BFloat16).* without overflow", "model-numerics", "a constant in the code does not fit the 16-bit dtype"),
    (r"Attempting to unscale FP16 gradients", "low-precision-state", "GradScaler needs fp32 weights: these are fp16"),
    (r"(step|unscale_)\(\) has already been called", "training-loop", "scaler.update() is missing, or the scaler is called twice"),
    (r"No inf checks were recorded", "training-loop", "the optimizer's parameters have no gradients"),
    (r"(Target|target) -?\d+ is out of bounds|index out of range|index .* is out of bounds", "dirty-data", "an index lies outside its table"),
    (r"Expected more than 1 value per channel", "dirty-data", "a batch of one row reaches a normalisation that needs more"),
    (r"Expected more than 1 spatial element", "dirty-data", "an input is so small that a single position is left, which a normalisation cannot use"),
    (r"Inference tensors? cannot be|update to inference tensor", "training-loop", "tensors made under torch.inference_mode are used in training"),
    (r"grad can be implicitly created only for scalar outputs", "training-loop", "backward starts from a loss that is not reduced to one number"),
    (r"optimizer got an empty parameter list|appear in more than one", "training-loop", "the optimizer was given the wrong parameters"),
    (r"all elements of (input|target) should be between 0 and 1", "dirty-data", "probabilities or targets outside [0, 1]"),
    (
        r"not positive.definite|is singular|singular matrix|failed to converge|did not converge|ill-conditioned",
        "model-numerics",
        "a matrix factorisation has no result at these values",
    ),
    (r"dtype|expected scalar type|same type|found .*(Half|BFloat16|Float)", "model-numerics", "tensors of different dtypes meet in one op"),
    (r"does not require grad|element 0 of tensors", "training-loop", "the loss is cut off from the graph"),
    (
        r"backward through the graph a second time|trying to backward through the graph a second time|modified by an inplace operation",
        "training-loop",
        "the graph is used again or changed",
    ),
    (r"binary_cross_entropy.*unsafe to autocast", "model-numerics", "binary_cross_entropy needs fp32 or the with_logits form"),
)


def check(recording: Recording) -> Iterator[Hit]:
    """What the exception's message says."""
    raised = recording.exception
    if raised is None:
        return
    text = f"{raised.type}: {raised.message.splitlines()[0] if raised.message else ''}"
    for pattern, cause, meaning in _MESSAGES:
        if re.search(pattern, raised.message, re.IGNORECASE):
            yield Hit(message=f"{meaning} ({text})", at=raised.site, cause=cause)
            return
    yield Hit(message=f"the step raised {text}", at=raised.site, confidence=Confidence.LOW)


RULE = Rule(code="RUN105", severity=Severity.ERROR, check=check)
