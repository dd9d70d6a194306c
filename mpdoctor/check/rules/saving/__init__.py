"""Saving, exporting, evaluating (CFG7)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where a dtype of files or of evaluation is known."""
    config = run.config
    return config.save_dtype.known or config.eval_dtype.known or config.stored_dtype.known
