"""Accumulation, and the reduction of gradients over ranks (CFG404 to CFG407)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where something tells how gradients are summed."""
    config = run.config
    return config.reduce_dtype.known or config.grad_accum_dtype.known or config.allreduce_op.known or config.lossy_communication.known
