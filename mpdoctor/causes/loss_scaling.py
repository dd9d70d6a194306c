"""fp16 gradients were flushed to zero, or were scaled until they overflowed.

What happens
    fp16 holds no number between 0 and 6e-8, and numbers below 6e-5 lose bits. Gradients are often that small. Multiplying the loss by a
    scale (65536, say) lifts them all into range, and the optimizer divides by it again. Without scaling small gradients are exactly 0 and
    nothing is learned. With a fixed scale that is too high they overflow, in every step; a dynamic scale halves itself after each overflow
    and skips that step. A scale that has fallen to 0 turns every gradient into NaN (0 times infinity).

What confirms it
    The gradients fit fp16 under another scale (mpdoctor prints the window of scales that works), and with dynamic scaling, or a scale in
    that window, the failure is gone.

What rules it out
    The run does not compute in fp16; or the value is bad before any gradient exists; or the gradient is bad at every scale.

A few skipped steps are normal: a dynamic scaler searches for its scale by skipping at the start, and probes upwards every 2000 steps.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="loss-scaling",
    order=2,
    title="Loss scaling",
    remedy=Remedy(text="Use a dynamic loss scale (torch.amp.GradScaler with its defaults), or train in bf16, which needs none."),
    test_hint="mpdoctor replay CHECKPOINT",
)
