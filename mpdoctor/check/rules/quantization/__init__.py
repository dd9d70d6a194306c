"""Quantised weights and 16-bit adapters (CFG52, CFG53)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where weights are quantised, or something is said about the adapters' dtype."""
    return run.config.quantization.known or run.config.adapter_dtype.known or run.config.adapter_autocast.known
