"""The NVIDIA library is there, but it does not answer.

What it looks for
    NVML fails, crashes or hangs before it has told how many GPUs there are.

Why training breaks
    The same library and driver stand behind CUDA. "Unknown Error" in a container usually means that the container lost its devices (after
    `systemctl daemon-reload`): running jobs go on, new ones find no GPU.

When it is fine
    A container that was not given permission to manage GPUs can train all the same.

How to confirm
    `nvidia-smi`, inside and outside the container.

References
    nvidia-docker#1730; nvitop#139 (crash with a lost GPU).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine

_REMEDIES = {
    "no-permission": "Run as a user who may open /dev/nvidiactl, or give the container the devices.",
    "failed": "In a container: restart it, it may have lost its devices. On the host: look at dmesg for NVRM.",
    "crashed": "Look at dmesg for NVRM and Xid; reboot if a GPU is lost.",
    "hung": "A GPU or the driver hangs: look at dmesg for NVRM and Xid, then reboot. --timeout gives it more time.",
}


def check(machine: Machine) -> Iterator[Hit]:
    """Every state in which GPUs may be there and cannot be asked."""
    state = machine.driver.state
    if state in _REMEDIES:
        severity = Severity.WARNING if state == "no-permission" else None
        yield Hit(message=f"NVML does not start: {machine.driver.detail}", remedy=Remedy(text=_REMEDIES[state]), severity=severity)


RULE: Rule[Machine] = Rule(code="GPU103", severity=Severity.ERROR, check=check)
