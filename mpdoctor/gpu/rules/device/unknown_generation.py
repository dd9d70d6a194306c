"""This GPU is newer than mpdoctor, or not in its table.

What it looks for
    A compute capability, LLVM target or PCI id that the tables do not have.

Why training breaks
    It need not. What mpdoctor says of its number formats is an assumption: newer NVIDIA GPUs are judged like the newest known.

When it is fine
    When an update of mpdoctor does not know the GPU either and the assumption is right.

How to confirm
    The maker's own table; a timed matrix product per format.

References
    developer.nvidia.com/cuda-gpus
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """The notes of the capability tables say so."""
    for note in gpu.formats.notes:
        if "not in the table" in note:
            yield Hit(message=note, at=gpu.ref, remedy=Remedy(text="Update mpdoctor; check with the maker's table."))


RULE: Rule[GpuInfo] = Rule(code="GPU215", severity=Severity.INFO, check=check)
