"""What to change, as text and as edits that `--diff` and `--fix` can make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mpdoctor.core.finding import Edit, Remedy
from mpdoctor.core.training import Setting


def remedy(text: str, *edits: Edit | None) -> Remedy:
    """A remedy; edits that cannot be placed are left out, and then none is offered: half a repair is none."""
    placed = tuple(edit for edit in edits if edit is not None)
    return Remedy(text=text, edits=placed if len(placed) == len(edits) else ())


def change(setting: Setting[Any], to: str) -> Edit | None:
    """Write another value where a setting stands. None for a setting that no file sets."""
    if not setting.explicit or setting.at is None or setting.at.line is None or setting.raw is None:
        return None
    return Edit(at=setting.at, old=setting.raw, new=to)


def rename(setting: Setting[Any], to: str) -> Edit | None:
    """Give a setting another name, beside it in the same mapping; its value stays."""
    edit = change(setting, setting.raw or "")
    return replace(edit, key=to) if edit is not None else None


def delete(setting: Setting[Any]) -> Edit | None:
    """Take a setting's line out of its file."""
    if not setting.explicit or setting.at is None or setting.at.line is None or setting.raw is None:
        return None
    return Edit(at=setting.at, old=setting.raw, new=None)
