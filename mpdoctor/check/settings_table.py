"""A run's settings as plain values: what `--show` and the JSON report print."""

from __future__ import annotations

from typing import Any

from mpdoctor.core.training import Origin, TrainingConfig


def as_table(config: TrainingConfig) -> dict[str, Any]:
    """Field -> value, origin, file, line, raw, note. Settings that nobody mentions are left out; unresolved ones stay, with the reason."""
    table: dict[str, Any] = {}
    for name, setting in config.settings().items():
        if setting.origin is Origin.UNKNOWN and setting.at is None:
            continue
        table[name] = {
            "value": setting.value,
            "origin": setting.origin.value,
            "file": setting.at.file if setting.at else None,
            "line": setting.at.line if setting.at else None,
            "key": setting.at.key if setting.at else None,
            "raw": setting.raw,
            "note": setting.note,
        }
    return table
