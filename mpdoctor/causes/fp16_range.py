"""Values that fp16 cannot hold, while bf16, which has fp32's range, would.

What happens
    fp16 ends at 65504. Feed-forward outputs, residual streams, attention scores and sums over long rows of models trained in bf16 or fp32
    pass that easily. The value becomes infinity; the next subtraction or normalisation makes NaN of it. Loss scaling cannot help: these
    are values of the forward pass.

What confirms it
    The op whose result first was infinite gives a finite number above 65504 when it runs in fp32 on the same inputs, and in bf16 (or
    fp32) the same step does not fail.

What rules it out
    The run does not compute in fp16; or the op's exact result is not finite either; or the step fails in bf16 and fp32 too.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="fp16-range",
    order=3,
    title="fp16 range; bf16 unused",
    remedy=Remedy(text="Train in bf16 where the GPU has it (compute capability 8.0 and later); otherwise keep the overflowing module in fp32."),
    test_hint="mpdoctor replay CHECKPOINT --precision fp16",
)
