"""fp8 training (CFG54, CFG55)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where fp8 is on, or an fp8 block stands in a launcher's file."""
    return bool(run.config.fp8.value) or any(file.node("fp8_config") is not None for file in run.of("accelerate"))
