"""Quantised weights and adapters (CFG52, CFG53)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where weights are quantised or adapters are trained."""
    return run.config.quantization.known or run.trains_adapters
