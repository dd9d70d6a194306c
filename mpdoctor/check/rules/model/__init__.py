"""Model families and what they were trained in (CFG50)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only where something tells which model it is."""
    config = run.config
    return config.model_family.known or config.model_dtype.known or config.stored_dtype.known or run.dialect == "kohya"
