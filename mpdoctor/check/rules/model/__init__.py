"""Model families and what they were trained in (CFG50)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only for fp16 runs, and where the model's own dtype is known."""
    return run.computes_in == "fp16" or run.config.model_dtype.known
