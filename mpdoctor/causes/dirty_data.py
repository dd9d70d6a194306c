"""A batch, or a row of it, that no precision could train on.

What happens
    NaN or infinity in an input, values orders of magnitude above the rest, an empty text, a row in which everything is masked (softmax over
    nothing is 0/0), labels that are all ignored (the mean of nothing), labels outside the number of classes, a CTC target longer than
    its input.

What confirms it
    The failing batch holds rows that fail alone, other batches pass, and without those rows the batch passes.

What rules it out
    Other batches fail in the same way, or the batch is clean by these tests and no single row carries the failure.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="dirty-data",
    order=4,
    title="Dirty data",
    remedy=Remedy(text="Repair or drop the named rows, and check batches in the data loader."),
    test_hint="mpdoctor replay CHECKPOINT --data FILE",
)
