"""Device numbers may mean other GPUs than nvidia-smi shows.

What it looks for
    GPUs of different models without `CUDA_DEVICE_ORDER=PCI_BUS_ID`.

Why training breaks
    By default CUDA counts the fastest GPU first, nvidia-smi and NVML count by PCI address. `CUDA_VISIBLE_DEVICES=1` may select another card than
    number 1 of nvidia-smi: another precision, another memory size.

When it is fine
    With one GPU, or with GPUs that are all alike.

How to confirm
    Compare `torch.cuda.get_device_properties(i).uuid` with `nvidia-smi -L`.

References
    CUDA programming guide, CUDA_DEVICE_ORDER.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.visible import MIXED


def check(machine: Machine) -> Iterator[Hit]:
    """Mixed names, and no fixed order."""
    seen = machine.visible
    if seen is not None and seen.uncertain == MIXED:
        which = f"the numbers in {seen.variable}={seen.value}" if seen.variable else "cuda:0, cuda:1, ..."
        yield Hit(
            message=f"the GPUs differ and CUDA counts the fastest first: {which} need not be the numbers of nvidia-smi",
            remedy=Remedy(text="Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or select by UUID.", patch="export CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        )


RULE: Rule[Machine] = Rule(code="GPU402", severity=Severity.WARNING, check=check, needs=("visible",))
