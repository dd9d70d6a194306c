"""What a run's log and scaler show (CFG602, CFG607, CFG608)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only with a log or a checkpoint."""
    return bool(run.of("checkpoint_facts"))
