"""Weights, moments, averages, gradients or buffers are kept in 16 bits and lose what they should collect.

What happens
    bf16 has 8 significant bits: adding less than 1/256 of a number to it changes nothing. An update of 2e-5 to a weight of 0.5 is lost,
    step after step. Adam's second moment is a square, and squares of small gradients are 0 in fp16; its eps of 1e-8 is 0 there too,
    and 0/0 is NaN. A sum of a thousand micro-batch gradients stops growing once it is 256 times larger than its terms.

What confirms it
    The share of updates that are lost in the dtype that stores the weight is large, and with fp32 master weights the weights move; or
    the optimizer's own arithmetic made the bad value, and in fp32 it does not.

What rules it out
    Weights and optimizer state are fp32, or the optimizer keeps fp32 masters.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="low-precision-state",
    order=6,
    title="Training state in 16 bits",
    remedy=Remedy(
        text="Keep fp32 master weights and optimizer state (autocast over fp32 weights does), or use an optimizer with stochastic rounding."
    ),
    test_hint="mpdoctor replay CHECKPOINT",
)
