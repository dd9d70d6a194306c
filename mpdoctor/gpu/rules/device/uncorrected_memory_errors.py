"""The GPU's memory had errors that ECC could not correct.

What it looks for
    Uncorrected ECC errors since the driver was loaded (an error), or earlier in the card's life (a remark).

Why training breaks
    With ECC on, such an error ends the program that met it (Xid 48, 94, 95): it is not a source of silent NaN. But a card with many is wearing
    out, and work that was contained in memory at that moment is lost.

When it is fine
    Errors of long ago, whose rows or pages have been replaced since.

How to confirm
    `nvidia-smi -q -d ECC`; the same step on another GPU.

References
    NVIDIA health validation, ECC checks; NVIDIA Xid catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """Volatile counters first; lifetime counters only where the volatile ones are clean."""
    recent = gpu.metric("ecc_uncorrected_volatile").value
    ever = gpu.metric("ecc_uncorrected_aggregate").value
    if recent:
        places = [(place, gpu.metric(f"ecc_{place}_uncorrected_volatile").value) for place in ("dram", "sram")]
        where = ", ".join(f"{number} in {place.upper()}" for place, number in places if number)
        yield Hit(
            message=f"{recent} uncorrected memory error{'s' if recent != 1 else ''} since the driver was loaded{f' ({where})' if where else ''}",
            at=gpu.ref,
            evidence=(Evidence(text=f"{ever} in the card's lifetime", kind=EvidenceKind.DEVICE, where=gpu.ref),) if ever else (),
            remedy=Remedy(text="Restart from a checkpoint of before them, on another GPU; drain and reset this one."),
        )
    elif ever:
        yield Hit(
            message=f"{ever} uncorrected memory error{'s' if ever != 1 else ''} in the card's lifetime, none since the driver was loaded",
            at=gpu.ref,
            severity=Severity.INFO,
        )


RULE: Rule[GpuInfo] = Rule(
    code="GPU301", severity=Severity.ERROR, confidence=Confidence.MEDIUM, check=check, cause="hardware", needs=("ecc_uncorrected_volatile",)
)
