"""The same step gives different results, or the device reports errors.

What happens
    Memory errors, an unstable overclock, a race in a kernel, or unseeded data: two runs from the same state differ.

What confirms it
    The repeated baseline is not bitwise equal, or fails only sometimes; ECC counters rise.

What rules it out
    The baseline ran twice with bitwise equal results.
"""

from mpdoctor.core.cause import Cause
from mpdoctor.core.finding import Remedy

CAUSE = Cause(
    id="hardware",
    order=11,
    title="Hardware, or not reproducible",
    remedy=Remedy(text="Run the same step on another device; look at `mpdoctor gpu`."),
    test_hint="mpdoctor gpu",
)
