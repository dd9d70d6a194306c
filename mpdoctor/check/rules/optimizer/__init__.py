"""The optimizer's own numbers (CFG305 to CFG323)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only for pretraining, for frameworks with habits of their own, and for numbers that stand out."""
    config = run.config
    habits = run.dialect in ("lightning", "ultralytics", "fairseq") or config.optimizer_family.value == "prodigy_like"
    return habits or config.method.value == "pretrain" or (config.eps.value or 0) >= run.thresholds.eps_large
