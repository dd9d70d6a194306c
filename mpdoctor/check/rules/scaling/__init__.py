"""Loss scaling (CFG2)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only fp16 is scaled; elsewhere there is something to say when scaling is set all the same."""
    config = run.config
    return run.computes_in in ("fp16", None) or config.setting("scaling.unused").known or config.setting("mmengine.loss_scale").known
