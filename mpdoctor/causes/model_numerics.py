"""An operation of the model or of the loss is undefined, or unsafe, at the values that it met.

What happens
    The square root of 0 has an infinite derivative; log(0), 0/0, inf - inf and softmax over a row of -inf are undefined; exp overflows;
    an eps of 1e-12 is 0 in fp16; a variance computed as E[x^2] - E[x]^2 becomes negative by cancellation. `torch.where` hides such a
    value in the forward pass, but its gradient is still computed: 0 times NaN is NaN.

What confirms it
    The op run alone on its inputs is not finite in fp32 and fp64 either, or only because a constant rounded to 0 in 16 bits.

What rules it out
    In fp64 the op's result is finite and fits the format.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="model-numerics",
    order=5,
    title="Unsafe operation in the model",
    remedy=Remedy(text="Make the operation safe at these values (an eps inside the root or the division, a clamp before exp, a finite mask value)."),
    test_hint="mpdoctor replay CHECKPOINT",
)
