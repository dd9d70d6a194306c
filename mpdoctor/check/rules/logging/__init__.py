"""What a run logs, and what it hides (CFG601 to CFG609)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only in fp16, and where the file says something about it."""
    config = run.config
    written = (config.nan_filter, config.nan_check, config.anomaly_mode, config.log_every, config.save_only_model)
    return run.computes_in == "fp16" or bool(run.of("checkpoint_facts")) or any(setting.explicit for setting in written)
