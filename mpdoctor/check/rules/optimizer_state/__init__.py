"""Weights, moments and averages kept in 16 or 8 bits (CFG301 to CFG325)."""

from __future__ import annotations

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where something that is updated is kept in few bits."""
    config = run.config
    state = config.optimizer_state_dtype
    return config.param_dtype.value in SIXTEEN_BIT or (state.known and state.value != "fp32") or config.ema_dtype.value in SIXTEEN_BIT
