"""A question to the NVIDIA driver crashed or never came back.

What it looks for
    A call of NVML that ended its process, or gave no answer in time. mpdoctor asks in a process of its own, leaves that question out and goes on.

Why training breaks
    A driver that crashes on a question is often one with a sick GPU; a job that meets it dies without a Python traceback, or stands still.

When it is fine
    Very slow drivers: without persistence mode the first question to each GPU takes seconds.

How to confirm
    `nvidia-smi -q` stops at the same place; the kernel log has NVRM lines.

References
    nvitop#139.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """One finding per question."""
    for incident in machine.driver.incidents if machine.driver.state == "ok" else ():
        yield Hit(message=incident, remedy=Remedy(text="Look at dmesg for NVRM and Xid lines; update the driver."), identity=incident)


RULE: Rule[Machine] = Rule(code="GPU104", severity=Severity.WARNING, check=check)
