"""Small files of `/sys`: every one may be missing, unreadable or odd."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.core.device import Reading

_MOST = 1 << 20


def text(path: Path) -> Reading[str]:
    """Content of a file, stripped; or why there is none."""
    try:
        with path.open("rb") as file:
            return Reading(file.read(_MOST).decode("utf-8", "replace").strip("\x00 \n\t"))
    except FileNotFoundError:
        return Reading(None, "not shown by this driver")
    except PermissionError:
        return Reading(None, "no permission")
    except OSError as error:
        return Reading(None, error.strerror or str(error))


def number(path: Path, scale: float = 1, base: int = 0) -> Reading[float]:
    """A number, divided by `scale` (1000 for milli-units). `base` 0 takes 0x as hexadecimal."""
    content = text(path)
    if content.value is None:
        return Reading(None, content.reason)
    try:
        value = int(content.value, base)
    except ValueError:
        return Reading(None, f"not a number: {content.value[:40]!r}")
    return Reading(value / scale if scale != 1 else value)


def first(*readings: Reading[float]) -> Reading[float]:
    """The first reading that has a value; the first reason otherwise."""
    return next((reading for reading in readings if reading), readings[0])


def folders(path: Path, pattern: str) -> list[Path]:
    """Matching entries, ordered as people count (`card2` before `card10`)."""
    try:
        found = list(path.glob(pattern))
    except OSError:
        return []
    return sorted(found, key=lambda entry: (len(entry.name), entry.name))
