"""The saved state is not what the run had, or the run had already failed when it was saved.

What happens
    Weights are non-finite or missing; bf16 weights passed through fp16 on their way (above 65504 they are inf, below 3e-8 they are 0);
    config and files disagree about the dtype; optimizer state was cast when it was loaded.

What confirms it
    The file holds the bad values, or the loaded values differ from the file's.

What rules it out
    All tensors of the checkpoint are finite and have the dtype that the config names.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="checkpoint",
    order=9,
    title="Checkpoint",
    remedy=Remedy(text="Load the weights in the dtype that they were saved in, or go back to the last good checkpoint."),
    test_hint="mpdoctor replay CHECKPOINT",
)
