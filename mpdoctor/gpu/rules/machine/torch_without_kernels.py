"""The installed torch has no kernels for a GPU of this machine.

What it looks for
    A torch wheel whose list of compute capabilities holds none that runs on the GPU. Read from torch's files; torch is not imported.

Why training breaks
    The first operation on the device ends with "no kernel image is available for execution on the device". CUDA 13 wheels have nothing for
    Maxwell, Pascal and Volta (so none for a V100 or P100); wheels of before 2.7 have nothing for Blackwell.

When it is fine
    A torch that was built from source can have other kernels than the published wheel: `mpdoctor gpu --torch` asks it.

How to confirm
    `python -c "import torch; print(torch.cuda.get_arch_list())"`, or `mpdoctor gpu --torch`.

References
    pytorch#157517, #172352, #190385; torch's RELEASE.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.torch_install import codes, runs, wheels_for


def check(machine: Machine) -> Iterator[Hit]:
    """By what torch itself says where it was asked, else by what its wheel was published with."""
    torch = machine.torch
    for gpu in machine.accelerators if torch and torch.cuda and not machine.named else ():
        capability = gpu.compute_capability.value
        if gpu.vendor != "nvidia" or capability is None or torch is None:
            continue
        kernels = torch.kernels
        if machine.torch_says and machine.torch_says.get("arch_list"):
            kernels = codes(machine.torch_says["arch_list"])
        if kernels is None or any(runs(code, capability) for code in kernels):
            continue
        has = ", ".join(f"{major}.{minor}" for major, minor in kernels)
        yield Hit(
            message=f"torch {torch.version} (CUDA {torch.cuda}) has no kernels for compute capability {capability[0]}.{capability[1]}; it has {has}",
            at=gpu.ref,
            remedy=Remedy(text=(wheels_for(capability) or "Install a newer torch, with a newer CUDA.").removesuffix(".") + "."),
        )


RULE: Rule[Machine] = Rule(code="GPU110", severity=Severity.ERROR, check=check)
