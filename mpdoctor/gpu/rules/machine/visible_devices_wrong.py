"""The variable that selects devices does not select what it seems to.

What it looks for
    `CUDA_VISIBLE_DEVICES` (AMD: `ROCR_VISIBLE_DEVICES`, `HIP_VISIBLE_DEVICES`) with an entry that is no device, a device that is not here, one
    listed twice, or an empty value.

Why training breaks
    CUDA says nothing: the list ends at the first wrong entry, and a repeated one empties it. The job sees fewer GPUs, or none and runs on the
    CPU.

When it is fine
    An empty value that is meant to hide the GPUs.

How to confirm
    `python -c "import torch; print(torch.cuda.device_count())"` in the same environment.

References
    CUDA programming guide, environment variables; torch.cuda._parse_visible_devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """What the parser of the list found wrong."""
    seen = machine.visible
    if seen is not None and seen.problem:
        left = len(seen.devices)
        yield Hit(
            message=f"{seen.variable}={seen.value!r}: {seen.problem}",
            remedy=Remedy(text=f"{left or 'No'} device{'s are' if left != 1 else ' is'} visible. Give UUIDs, which no order can change."),
            severity=Severity.INFO if seen.value == "" else None,
        )


RULE: Rule[Machine] = Rule(code="GPU401", severity=Severity.WARNING, check=check, needs=("visible",))
