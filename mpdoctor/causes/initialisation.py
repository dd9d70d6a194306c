"""Parameters or buffers that were never given a value, or start in a wrong range.

What happens
    A parameter made by `torch.empty` and never filled holds whatever was in memory. A head that is missing from a checkpoint loaded with
    `strict=False` is one.

What confirms it
    The parameter is bad before the first step, and no checkpoint holds it.

What rules it out
    All parameters and buffers are finite before the first step.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="initialisation",
    order=8,
    title="Initialisation",
    remedy=Remedy(text="Initialise the named parameters, and look at what load_state_dict reports as missing."),
    test_hint="mpdoctor replay CHECKPOINT",
)
