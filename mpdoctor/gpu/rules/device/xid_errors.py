"""The kernel log has Xid errors of this GPU.

What it looks for
    NVIDIA's lines `NVRM: Xid (PCI:...): number` since the kernel's buffer began, matched to the GPU by its PCI address.

Why training breaks
    48, 63, 64, 92, 94, 95 are memory errors, 74 is the NVLink (it can spoil what ranks exchange), 79 a GPU that fell off the bus, 119 to 121 the
    GPU's firmware. One training run that gave NaN from the first step was traced to an Xid, and a reboot cured it; that is rare.

When it is fine
    13, 31, 43 and 45 usually tell of the program: a bad kernel, an illegal address, a job that was killed.

How to confirm
    `dmesg | grep -i xid`; the same step on another GPU.

References
    docs.nvidia.com/deploy/xid-errors; nverror.h of the open kernel modules; torchtitan#951.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.core.device import GpuInfo
from mpdoctor.core.evidence import Evidence, EvidenceKind
from mpdoctor.core.finding import Confidence, Remedy, Severity
from mpdoctor.core.rule import Hit, Rule

_MEANING = {
    13: "graphics exception", 31: "MMU fault", 43: "stopped channel", 45: "preemptive removal", 48: "uncorrectable memory error",
    63: "row or page retired", 64: "retiring a row or page failed", 74: "NVLink error", 79: "fallen off the bus",
    92: "many corrected memory errors", 94: "contained memory error",
    95: "uncontained memory error", 119: "GPU firmware timeout", 120: "GPU firmware error", 121: "link to the CPU", 154: "recovery action changed",
}  # fmt: skip
_SERIOUS = frozenset({48, 64, 74, 79, 95, 119, 120, 121})
_MEMORY = frozenset({63, 92, 94, 154})


def check(gpu: GpuInfo) -> Iterator[Hit]:
    """One finding per number."""
    for event in gpu.metric("xids").value or ():
        number, count = event["xid"], event["count"]
        severity = Severity.ERROR if number in _SERIOUS else Severity.WARNING if number in _MEMORY else Severity.INFO
        yield Hit(
            message=f"Xid {number} ({_MEANING.get(number, 'see the catalogue')}) {count} time{'s' if count != 1 else ''} in the kernel log",
            at=gpu.ref,
            severity=severity,
            confidence=Confidence.MEDIUM if severity is not Severity.INFO else Confidence.LOW,
            cause="hardware" if severity is not Severity.INFO else None,
            evidence=(Evidence(text=event["last"], kind=EvidenceKind.DEVICE, where=gpu.ref),),
            remedy=Remedy(
                text="Repeat the step on another GPU; drain and reset this one." if severity is not Severity.INFO else "Look at the program first."
            ),
            identity=str(number),
        )


RULE: Rule[GpuInfo] = Rule(code="GPU310", severity=Severity.WARNING, check=check, needs=("xids",))
