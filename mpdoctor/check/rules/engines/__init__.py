"""DeepSpeed and accelerate against the trainer's config (CFG802 to CFG813)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool:
    """Only with such a file."""
    return any(file.role in ("engine", "launcher") for file in run.files)
