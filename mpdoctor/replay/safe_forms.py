"""How to write an operation that is undefined, or too large, at some values so that it is not."""

from __future__ import annotations

import re

from mpdoctor.core.finding import Remedy
from mpdoctor.core.report import NonFinite

_FORMS: tuple[tuple[str, str], ...] = (
    (r"ctc_loss", "Pass zero_infinity=True, or drop rows whose target does not fit into its input."),
    (r"softmax|logsumexp", "Leave at least one position of each row unmasked, or mask with a finite number (half of torch.finfo(x.dtype).min)."),
    (r"nll_loss|cross_entropy", "Divide the summed loss by max(1, number of labels), or drop batches in which every label is ignored."),
    (r"rsqrt", "Put the eps inside the root, torch.rsqrt(x + eps), with an eps that the dtype can hold (6e-5 or more in fp16)."),
    (
        r"sqrt|(?<!layer)(?<!layer_)(?<!batch)(?<!batch_)(?<!group)(?<!group_)norm",
        "Put an eps inside the root, torch.sqrt(x + eps): at 0 its derivative is infinite, below 0 it is not defined.",
    ),
    (r"log", "Take log_softmax, logsigmoid or xlogy in place of the log of a probability; otherwise log(x.clamp_min(eps))."),
    (r"exp(?!and)|cosh|sinh", "Subtract the largest exponent first (softmax, logsumexp), or clamp it: exp(x) leaves fp32 at 88.7 and fp16 at 11.1."),
    (r"pow", "Raise x.clamp_min(eps): a fractional power of a negative number is not defined, and its derivative at 0 may be infinite."),
    (r"acos|asin|atanh|erfinv", "Clamp the argument a little inside of its limits first, x.clamp(-1 + 1e-6, 1 - 1e-6)."),
    (r"std|var", "Use correction=0 where a group can have a single value, and add an eps to what is divided by it."),
    (r"mean", "Divide the sum by max(1, count), or leave empty selections out."),
    (r"div|reciprocal", "Divide by x + eps or by x.clamp_min(eps), or leave the rows with a divisor of 0 out."),
)
"""Parts of an op's name, and how it is written safely; the first that fits is taken."""
_ZERO_TIMES_INFINITY = re.compile(r"(?<![\d.])-?0(\.0)? \* -?inf|-?inf \* -?0(\.0)?(?![\d.])")


def safe_form(origin: NonFinite) -> Remedy | None:
    """What to change at the op that made the first bad value; None for an op of which nothing particular is known."""
    if origin.mechanism == "written":
        return Remedy(text="Write a finite number (half of torch.finfo(x.dtype).min for a mask), or let nothing but a softmax consume the infinity.")
    if "is 0 in this dtype" in origin.why:
        return Remedy(text="Use an eps that the dtype can hold (6e-5 or more in fp16), or compute this operation in fp32.")
    if origin.hurts_at is not None:
        return Remedy(
            text="Make the argument safe before the operation (x = torch.where(ok, x, 1)), and select afterwards: "
            "a branch that torch.where hides still has a derivative."
        )
    if origin.mechanism in ("overflow", "intermediate-overflow"):
        return None
    if _ZERO_TIMES_INFINITY.search(origin.why):
        return Remedy(text="Select with torch.where(mask, x, 0) in place of multiplying by a mask: 0 times infinity is NaN.")
    op = f"{origin.site.op or ''} {origin.why.split(' ')[0]}".lower()
    return next((Remedy(text=text) for pattern, text in _FORMS if re.search(pattern, op)), None)
