"""What a framework makes of its own settings (CFG807 to CFG819)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only for the frameworks that have such habits."""
    frameworks = ("lightning", "ms_swift", "llmfoundry", "llamafactory")
    return run.dialect in frameworks or str(run.config.framework_version.value or "").startswith("5")
