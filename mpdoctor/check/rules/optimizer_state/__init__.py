"""Weights, moments and averages kept in 16 or 8 bits (CFG301 to CFG325)."""

from __future__ import annotations

from mpdoctor.check.subject import SIXTEEN_BIT, CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where something that is updated is kept in few bits; the frozen base of adapters is not."""
    config = run.config
    state = config.optimizer_state_dtype
    weights = config.param_dtype.value in SIXTEEN_BIT and not (run.trains_adapters and config.master_dtype.value == "params")
    return weights or (state.known and state.value != "fp32") or config.ema_dtype.value in SIXTEEN_BIT
