"""The installed torch cannot use the GPUs of this machine.

What it looks for
    A CPU-only torch on a machine with GPUs, or a CUDA torch where the GPUs are AMD's (and the reverse).

Why training breaks
    `torch.cuda.is_available()` is False: scripts that fall back to the CPU train a hundred times slower, others stop.

When it is fine
    When this environment is not the one that trains.

How to confirm
    `python -c "import torch; print(torch.__version__, torch.version.cuda, torch.version.hip)"`.

References
    https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine

_MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
_BUILDS = {"nvidia": ("cuda", "CUDA"), "amd": ("hip", "ROCm"), "intel": ("xpu", "XPU")}


def check(machine: Machine) -> Iterator[Hit]:
    """The build's own constants against the maker of the GPUs."""
    torch, gpus = machine.torch, machine.accelerators
    if torch is None or not gpus or machine.named or gpus[0].vendor not in _BUILDS:
        return
    attribute, name = _BUILDS[gpus[0].vendor]
    if not getattr(torch, attribute):
        has = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPU only"
        yield Hit(
            message=f"torch {torch.version} ({has}) cannot use the {_MAKERS[gpus[0].vendor]} GPU{'s' if len(gpus) > 1 else ''} here",
            remedy=Remedy(text=f"Install a {name} build of torch: https://pytorch.org/get-started/locally/"),
        )


RULE: Rule[Machine] = Rule(code="GPU111", severity=Severity.WARNING, check=check)
