"""Learning rates against the method and the size of the model (CFG306 to CFG324)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool | str:
    """Only where a learning rate is known."""
    return run.config.lr.known or run.config.lr_scaled.known or "not known: learning rate"
