"""The run computes in another precision than it was asked for.

What happens
    Autocast that never covers the forward pass, modules that are kept in fp32, a GPU that only emulates bf16: the run is as slow as fp32.

What confirms it
    The share of matrix-product FLOPs by dtype, measured in one step.

What rules it out
    Nearly all FLOPs ran in the dtype asked for.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="slow-precision",
    order=10,
    title="Not in the precision asked for",
    remedy=Remedy(text="Wrap the forward pass in autocast, or remove what keeps modules in fp32."),
    test_hint="mpdoctor replay CHECKPOINT",
)
