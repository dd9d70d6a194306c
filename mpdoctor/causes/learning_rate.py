"""The steps are so large that the loss grows instead of falling.

What happens
    A gradient step larger than about 2/curvature overshoots the minimum, lands where the gradient is larger still, and overshoots
    further. Loss, activations and weights grow by a factor from step to step until some format's range ends: 65504 in fp16 first,
    3.4e38 in bf16 and fp32 later. The overflow is the end of the story, not its beginning.

What confirms it
    The loss, the gradient norm or the weights grew over the steps before the failure, and the same steps with a smaller learning
    rate do not fail. A smaller step alone proves nothing: with smaller steps every failure comes later.

What rules it out
    The failure is there in the first forward pass, before any step was taken; or it is the same with a tenth of the learning rate.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="learning-rate",
    order=1,
    title="Learning rate too high",
    remedy=Remedy(text="Lower the learning rate (start with a tenth), warm up, and clip the gradient norm."),
    test_hint="mpdoctor replay CHECKPOINT --steps 10",
)
