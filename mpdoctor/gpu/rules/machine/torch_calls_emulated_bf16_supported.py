"""torch says that bf16 is supported on a GPU that only emulates it.

What it looks for
    `torch.cuda.is_bf16_supported()` is True on a device whose compute capability is below 8.0 (`--torch` asks it, device by device).

Why training breaks
    That function answers whether a bf16 tensor can be made. Scripts and trainers that choose bf16 by it run slower than in fp32 on a T4 or V100,
    have no cuDNN convolutions, and fail under torch.compile ("Feature '.bf16' requires .target sm_80").

When it is fine
    When the script asks `is_bf16_supported(including_emulation=False)`, or decides by the compute capability.

How to confirm
    Time one matrix product in bf16, fp16 and fp32.

References
    pytorch#118122, #124996, #148322; openxla#12429.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """What torch claims against the table, per device."""
    for device in (machine.torch_says or {}).get("devices", ()):
        capability = tuple(device.get("capability") or ())
        if device.get("bf16_claimed") and (0,) < capability < (8, 0) and not device.get("hip"):
            yield Hit(
                message=f"torch calls bf16 supported on cuda:{device['ordinal']} ({device['name']}), which only emulates it",
                remedy=Remedy(text="Decide by torch.cuda.get_device_capability() >= (8, 0); train in fp16 with GradScaler here."),
                identity=str(device["ordinal"]),
            )


RULE: Rule[Machine] = Rule(code="GPU203", severity=Severity.INFO, check=check, needs=("torch_says",))
