"""The loop itself does something else than it seems to.

What happens
    Clipping before `scaler.unscale_` cuts the scaled gradients; `zero_grad` that is skipped together with the step keeps a NaN for ever;
    an autocast context around the whole loop keeps serving the weights of step 0 from its cache; a detached graph, or reentrant
    checkpointing over inputs that need no gradient, leaves parameters without gradients; `nan_to_num` replaces the evidence.

What confirms it
    mpdoctor sees the calls and their order while it replays the step, and the step without the mistake behaves.

What rules it out
    The order of the calls is the documented one.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="training-loop",
    order=7,
    title="Mistake in the training loop",
    remedy=Remedy(text="Reorder the loop as the evidence says."),
    test_hint="mpdoctor replay --recipe FILE.py",
)
