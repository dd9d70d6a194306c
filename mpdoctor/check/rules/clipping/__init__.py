"""Gradient clipping (CFG401 to CFG408; clipping before unscaling, CFG402, is found in scripts)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where clipping is off or unusual."""
    config, limits = run.config, run.thresholds
    norm = config.clip_norm.value
    odd = norm is not None and not limits.clip_low <= norm <= limits.clip_high
    return config.clip_kind.value == "none" or odd or bool(config.optimizer_in_backward.value)
