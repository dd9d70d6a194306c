"""`mpdoctor check --show`: what a stack of config files comes to, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mpdoctor.report.characters import one_line

if TYPE_CHECKING:
    from mpdoctor.core.report import Report

_FIRST = (
    "compute_dtype", "param_dtype", "master_dtype", "optimizer_state_dtype", "reduce_dtype", "grad_accum_dtype", "save_dtype", "precision_mode",
    "scaler", "init_scale", "static_scale", "growth_interval", "lr", "optimizer", "warmup_steps", "warmup_ratio", "clip_norm", "micro_batch",
    "accumulation_steps", "world_size", "global_batch",
)  # fmt: skip
"""What people look for, in this order; all else follows by name."""


def settings_table(report: Report) -> str:
    """One table per run: setting, value, where from."""
    if not report.config:
        return f"{one_line(report.headline.text)}\n"
    single = all(isinstance(entry, dict) and "origin" in entry for entry in report.config.values())
    runs: dict[str, Any] = {" + ".join(dict.fromkeys(item.path for item in report.inputs)): report.config} if single else report.config
    return "\n".join(_table(name, table) for name, table in runs.items())


def _table(name: str, table: dict[str, Any]) -> str:
    rows = [(one_line(field), one_line(_value(table[field])), one_line(_source(table[field]))) for field in _ordered(table)]
    name = one_line(name)
    if not rows:
        return f"{name}\n  no settings\n"
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {field:<{widths[0]}}  {value:<{widths[1]}}  {source}".rstrip() for field, value, source in rows]
    return "\n".join([name, *lines, ""])


def _ordered(table: dict[str, Any]) -> Iterable[str]:
    first = [field for field in _FIRST if field in table]
    return [*first, *(field for field in table if field not in _FIRST)]


def _value(entry: dict[str, Any]) -> str:
    if entry["origin"] == "unknown":
        return "?"
    value = entry["value"]
    return f"{value:g}" if isinstance(value, float) else "true" if value is True else "false" if value is False else str(value)


def _source(entry: dict[str, Any]) -> str:
    place = f"{entry['file']}:{entry['line']}" if entry["file"] and entry["line"] else (entry["file"] or "")
    note = entry["note"] or ""
    if entry["origin"] == "explicit":
        key = f"{entry['key']}: {entry['raw']}" if entry["key"] and entry["raw"] is not None else (entry["key"] or "")
        return "  ".join(part for part in (place, key, note) if part)
    if entry["origin"] == "unknown":
        return "  ".join(part for part in (place, note) if part)
    return "  ".join(part for part in (entry["origin"], place if entry["line"] else "", note) if part)
