"""The checklist: what can go wrong, one file per cause, and how evidence is weighed.

Imports `core` only. A cause's module exports `CAUSE`; its docstring is what `mpdoctor explain CAUSE`
prints. To add one, add a file; `order` places it in the checklist.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from mpdoctor.core import rule
from mpdoctor.core.cause import Cause


@cache
def all_causes() -> tuple[Cause, ...]:
    """All causes in the checklist's order, each with its documentation."""
    found = []
    for module in rule.modules("mpdoctor.causes"):
        cause = getattr(module, "CAUSE", None)
        if isinstance(cause, Cause):
            found.append(replace(cause, documentation=(module.__doc__ or "").strip()))
    return tuple(sorted(found, key=lambda cause: cause.order))


def cause_order() -> dict[str, int]:
    """Place in the checklist, by cause id."""
    return {cause.id: cause.order for cause in all_causes()}
