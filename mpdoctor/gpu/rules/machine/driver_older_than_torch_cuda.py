"""The NVIDIA driver is too old for the CUDA that torch was built with.

What it looks for
    A torch whose CUDA has a higher major version than the newest that the driver serves. Minor versions do not matter: CUDA keeps them
    compatible.

Why training breaks
    "The NVIDIA driver on your system is too old": no CUDA device, and often a silent run on the CPU.

When it is fine
    With NVIDIA's forward-compatibility package on data-centre GPUs.

How to confirm
    `nvidia-smi` prints the newest CUDA that the driver serves in its first lines.

References
    CUDA compatibility guide, docs.nvidia.com/deploy/cuda-compatibility.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine


def check(machine: Machine) -> Iterator[Hit]:
    """Compare major versions."""
    torch, serves = machine.torch, machine.driver.cuda_version.value
    if torch is None or not torch.cuda or serves is None:
        return
    major = torch.cuda.split(".")[0]
    if major.isdigit() and int(major) > serves[0]:
        version = machine.driver.version
        yield Hit(
            message=f"torch {torch.version} needs CUDA {torch.cuda}, driver {version} serves CUDA {serves[0]}.{serves[1]} at most",
            remedy=Remedy(text=f"Update the NVIDIA driver, or install a torch built with CUDA {serves[0]}."),
        )


RULE: Rule[Machine] = Rule(code="GPU112", severity=Severity.ERROR, check=check)
