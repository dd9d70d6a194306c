"""Xid errors: what NVIDIA's kernel driver wrote to the kernel log about each GPU.

NVML tells only of errors that happen while somebody listens; the past is in the log. Meanings: `nverror.h` of the open kernel modules, and NVIDIA's
Xid catalogue (docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mpdoctor.core.device import Reading
from mpdoctor.core.record import dataclass

_XID = r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, (.*))?"
_FALLEN = r"NVRM: .*GPU (?:at )?(?:PCI:)?([0-9a-fA-F:.]+).*fallen off the bus"

SYSTEM_LOGS = ("var/log/kern.log", "var/log/messages", "var/log/syslog")
_TAIL = 4 << 20
"""Bytes from the end of a log file that are looked at."""


@dataclass(frozen=True, slots=True)
class Xid:
    """One kind of error of one GPU: its number, how often it is in the log, and the last line."""

    number: int
    count: int
    last: str


def read(path: Path) -> Reading[list[str]]:
    """NVIDIA's lines of a log file; or why it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()
    except OSError as error:
        return Reading(None, f"{path}: {error.strerror or error}")
    return Reading([line for line in lines if "NVRM" in line])


def fallback(root: Path, reason: str | None) -> Reading[list[str]]:
    """The system's log files, where the kernel's own buffer could not be read; `reason` says why it could not."""
    for name in SYSTEM_LOGS:
        found = read(root / name)
        if found:
            return found
    return Reading(None, f"the kernel log cannot be read ({reason or 'not shown here'}); as root, or with --kernel-log FILE (dmesg > FILE), it can")


def xids(lines: Iterable[str]) -> dict[tuple[int, int, int], list[Xid]]:
    """Errors by PCI address (domain, bus, device), in the order of their first appearance."""
    found: dict[tuple[int, int, int], dict[int, Xid]] = {}
    for line in lines:
        event, fallen = re.search(_XID, line), re.search(_FALLEN, line)
        match = event or fallen
        where = address(match[1]) if match else None
        if match is None or where is None:
            continue
        number = int(event[2]) if event else 79
        before = found.setdefault(where, {}).get(number)
        found[where][number] = Xid(number, (before.count if before else 0) + 1, line.strip())
    return {where: list(events.values()) for where, events in found.items()}


def address(text: str) -> tuple[int, int, int] | None:
    """Domain, bus and device of a PCI address however it is written: `0000:07:00.0`, `00000000:07:00`, `07:00`."""
    parts = text.split(".")[0].split(":")
    try:
        numbers = [int(part, 16) for part in parts if part]
    except ValueError:
        return None
    match numbers:
        case [domain, bus, device]:
            return domain & 0xFFFF, bus, device
        case [bus, device]:
            return 0, bus, device
    return None
