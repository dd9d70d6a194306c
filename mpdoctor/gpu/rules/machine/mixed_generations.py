"""GPUs of different generations would train together.

What it looks for
    Visible GPUs that do not have the same native formats.

Why training breaks
    One precision has to fit all ranks: the weakest card decides. A job that asks `torch.cuda.is_bf16_supported()` on rank 0 may get an answer
    that is wrong for another rank, and ranks that compute in different formats drift apart.

When it is fine
    When a job uses one kind of GPU only, by `CUDA_VISIBLE_DEVICES`.

How to confirm
    `mpdoctor gpu` lists the formats per device.

References
    torch.cuda.is_bf16_supported looks at the current device only.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.finding import Remedy, Severity
from mpdoctor.core.rule import Hit, Rule
from mpdoctor.gpu.machine import Machine
from mpdoctor.gpu.recommend import together
from mpdoctor.gpu.require import FORMATS


def check(machine: Machine) -> Iterator[Hit]:
    """Compare the sets of native formats."""
    groups: dict[tuple[str, ...], list[GpuInfo]] = {}
    for gpu in together(machine):
        groups.setdefault(tuple(name for name in FORMATS if gpu.formats.get(name).native), []).append(gpu)
    if len(groups) < 2:
        return
    parts = [f"{', '.join(dict.fromkeys(g.name for g in gpus))}: {' '.join(formats) or 'fp32 only'}" for formats, gpus in groups.items()]
    yield Hit(
        message=f"GPUs with different formats would train together ({'; '.join(parts)}): the weakest decides",
        remedy=Remedy(text="Use the precision that all of them have, or make only one kind visible (CUDA_VISIBLE_DEVICES with UUIDs)."),
    )


RULE: Rule[Machine] = Rule(code="GPU201", severity=Severity.WARNING, check=check)
