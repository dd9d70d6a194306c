"""What AMD SMI tells of each GPU, where the `amdsmi` package and its library are installed. Asked in a child process."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from mpdoctor.gpu.backends.isolation import Interview


def ask(limit: float) -> dict[str, dict[str, Any]]:
    """Facts by PCI address (`0000:c1:00.0`); empty where AMD SMI is not installed or does not answer."""
    try:
        installed = find_spec("amdsmi") is not None
    except (ImportError, ValueError):
        installed = False
    if not installed:
        return {}
    try:
        answers = Interview(
            lambda left_out: [sys.executable, "-m", "mpdoctor.gpu.backends.amdsmi_child", left_out], limit=limit, patience=limit / 3
        ).result()
    except OSError:
        return {}
    return {facts["pci_bus_id"].lower(): facts for facts in answers.got.values() if facts.get("pci_bus_id")}
