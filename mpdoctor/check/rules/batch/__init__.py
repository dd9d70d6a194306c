"""Very small batches (CFG409, CFG410)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only for batches that are small enough to matter."""
    batch = run.config.micro_batch.value
    return batch is not None and batch <= run.thresholds.tiny_batch
