"""Number formats against the GPU that has to compute in them (CFG104 to CFG120)."""

from __future__ import annotations

from mpdoctor.check.subject import CheckSubject


def applies(run: CheckSubject) -> bool | str:
    """Only with a GPU to judge for."""
    return bool(run.gpus) or "not known: the GPU (--gpu names it)"
