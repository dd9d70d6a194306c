"""An op's result disagrees with its own reference beyond rounding.

What happens
    A fused kernel has a bug for these shapes, strides or values.

What confirms it
    The op alone, on the same inputs, differs from its fp32 and fp64 reference by more than rounding explains, and another implementation
    does not fail.

What rules it out
    The op agrees with its reference within rounding.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="kernel",
    order=12,
    title="Wrong kernel",
    remedy=Remedy(text="Use another implementation of the op (attention by the math kernel, fused optimizer off), and report it to the library."),
    test_hint="mpdoctor replay CHECKPOINT",
)
