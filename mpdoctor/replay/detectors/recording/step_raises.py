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
from dataclasses import dataclass

from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.location import Phase
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.core.trace import Recording
from mpdoctor.replay.observations import taken


@dataclass(frozen=True)
class _Message:
    """A kind of exception: how its message reads, the cause that it tells, its meaning, and what to change."""

    pattern: str
    cause: str
    meaning: str
    remedy: str


_MESSAGES = (
    _Message(
        r"cannot be converted to type .*(Half|BFloat16).* without overflow",
        "model-numerics",
        "a constant in the code does not fit the 16-bit dtype",
        "Take the constant from the tensor's own dtype: torch.finfo(x.dtype).min, or float('-inf') for a mask.",
    ),
    _Message(
        r"Attempting to unscale FP16 gradients",
        "low-precision-state",
        "GradScaler needs fp32 weights: these are fp16",
        "Keep the weights in fp32 (load with dtype=torch.float32, no .half()) and compute in fp16 under autocast; with adapters, cast the "
        "trainable parameters to fp32.",
    ),
    _Message(
        r"(step|unscale_)\(\) has already been called",
        "training-loop",
        "scaler.update() is missing, or the scaler is called twice",
        "Call scaler.unscale_ and scaler.step once per optimizer and step, and scaler.update() once at the end of each step.",
    ),
    _Message(
        r"No inf checks were recorded",
        "training-loop",
        "the optimizer's parameters have no gradients",
        "Give the optimizer the parameters that the loss depends on, and call scaler.step only after scaler.scale(loss).backward().",
    ),
    _Message(
        r"(Target|target) -?\d+ is out of bounds|index out of range|index .* is out of bounds",
        "dirty-data",
        "an index lies outside its table",
        "Repair the labels or token ids, or enlarge the table that they point into (number of classes, vocabulary, positions).",
    ),
    _Message(
        r"Expected more than 1 value per channel",
        "dirty-data",
        "a batch of one row reaches a normalisation that needs more",
        "Drop the last, smaller batch (drop_last=True), or use a normalisation that does not need other rows.",
    ),
    _Message(
        r"Expected more than 1 spatial element",
        "dirty-data",
        "an input is so small that a single position is left, which a normalisation cannot use",
        "Drop or resize inputs that are too small.",
    ),
    _Message(
        r"Inference tensors? cannot be|update to inference tensor",
        "training-loop",
        "tensors made under torch.inference_mode are used in training",
        "Use torch.no_grad in place of torch.inference_mode for what training uses later, or clone the tensors.",
    ),
    _Message(
        r"grad can be implicitly created only for scalar outputs",
        "training-loop",
        "backward starts from a loss that is not reduced to one number",
        "Reduce the loss (mean or sum) before backward.",
    ),
    _Message(
        r"optimizer got an empty parameter list|appear in more than one",
        "training-loop",
        "the optimizer was given the wrong parameters",
        "Give the optimizer each trainable parameter exactly once.",
    ),
    _Message(
        r"Length of all samples has to be greater than 0",
        "dirty-data",
        "a sequence of the batch is empty",
        "Drop empty sequences when the data is read.",
    ),
    _Message(
        r"Class values must be (non-negative|smaller)",
        "dirty-data",
        "a label lies outside the classes",
        "Repair the labels, or leave unlabelled samples out of the loss.",
    ),
    _Message(
        r"all elements of (input|target) should be between 0 and 1",
        "dirty-data",
        "probabilities or targets outside [0, 1]",
        "Bring the targets into [0, 1]; for inputs, use the with_logits form of the loss.",
    ),
    _Message(
        r"not positive.definite|is singular|singular matrix|failed to converge|did not converge|ill-conditioned",
        "model-numerics",
        "a matrix factorisation has no result at these values",
        "Factorise in fp32 or fp64, and add a small multiple of the identity to the matrix first.",
    ),
    _Message(
        r"unsafe to autocast",
        "model-numerics",
        "binary_cross_entropy under autocast: its derivative leaves fp16's range",
        "Use binary_cross_entropy_with_logits on values before the sigmoid, or leave autocast for the loss.",
    ),
    _Message(
        r"dtype|expected scalar type|same type|type .* should be the same|found .*(Half|BFloat16|Float)",
        "model-numerics",
        "tensors of different dtypes meet in one op",
        "Run the forward pass under autocast with fp32 weights, or cast the input to the dtype of the weights.",
    ),
    _Message(
        r"does not require grad|element 0 of tensors",
        "training-loop",
        "the loss is cut off from the graph",
        "Look for torch.no_grad, detach, .item() or .data between the parameters and the loss, and for parameters that are all frozen.",
    ),
    _Message(
        r"backward through the graph a second time",
        "training-loop",
        "the graph is used again",
        "Detach what is carried from one step to the next (state, running losses), or call backward once on the sum of the losses.",
    ),
    _Message(
        r"modified by an inplace operation",
        "training-loop",
        "a value that the backward pass needs was overwritten",
        "Write the result into a new tensor in place of the in-place operation.",
    ),
)


def check(recording: Recording) -> Iterator[Hit]:
    """What the exception's message says."""
    raised = recording.exception
    if raised is None:
        return
    text = f"{raised.type}: {raised.message.splitlines()[0] if raised.message else ''}"
    for known in _MESSAGES:
        if re.search(known.pattern, raised.message, re.IGNORECASE):
            yield Hit(message=f"{known.meaning} ({text})", at=raised.site, cause=known.cause, remedy=Remedy(text=known.remedy))
            return
    first_step = not taken(recording)
    origin = recording.trace.origin if recording.trace else None
    if raised.site.phase is Phase.OPTIMIZER and recording.loaded_state and first_step:
        yield Hit(message=f"the optimizer cannot step on the state that was loaded ({text})", at=raised.site, cause="checkpoint")
    elif raised.site.phase in (Phase.FORWARD, Phase.LOSS) and not first_step and origin is None:
        # What fails for one batch, and passes for those before and after it, is the batch's fault: EXP401 tells.
        told = f"the batch of step {raised.step} makes the step raise {text}"
        yield Hit(message=told, at=raised.site, cause="dirty-data", confidence=Confidence.MEDIUM)
    else:
        yield Hit(message=f"the step raised {text}", at=raised.site, confidence=Confidence.LOW)


RULE = Rule(code="RUN105", severity=Severity.ERROR, check=check)
