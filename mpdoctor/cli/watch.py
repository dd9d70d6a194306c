"""`mpdoctor gpu --watch`: the devices live, with what changed since the watching began."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mpdoctor.cli import console
from mpdoctor.core.device import GpuInfo
from mpdoctor.report.sections.ink import Ink

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from mpdoctor.cli.options import ReportOptions
    from mpdoctor.core.report import Report

COUNTERS = {
    "ecc_corrected_volatile": "corrected memory errors",
    "ecc_uncorrected_volatile": "uncorrected memory errors",
    "remapped_corrected": "rows remapped after corrected errors",
    "remapped_uncorrected": "rows remapped after uncorrected errors",
    "retired_pages_single_bit": "pages retired after single-bit errors",
    "retired_pages_double_bit": "pages retired after double-bit errors",
}
"""Metrics that only ever rise, and what they count."""

GAUGES = (("temperature_celsius", "°C"), ("power_watts", "W"), ("utilization_percent", "% busy"))


def watched(read: Callable[[], Report], *, every: float, count: int | None, options: ReportOptions) -> Report:
    """Read again and again, show each reading on stderr, and return the last one.

    Ends after `count` readings, or with Ctrl-C, which is the usual way out and no error. A terminal shows one table that changes; elsewhere each
    reading is a block of lines.
    """
    from rich.live import Live

    terminal = _terminal(options)
    first = last = read()
    ink = Ink(ascii=options.ascii)
    readings = 1
    try:
        with Live(_panel(first, first, ink), console=terminal, refresh_per_second=4, transient=True, auto_refresh=False) as live:
            while True:
                live.update(_panel(first, last, ink), refresh=True)
                if not terminal.is_terminal:
                    terminal.print(_panel(first, last, ink))
                if count is not None and readings >= count:
                    break
                time.sleep(every)
                last = read()
                readings += 1
    except KeyboardInterrupt:
        pass
    return last


def _terminal(options: ReportOptions) -> Console:
    from rich.console import Console

    colored = console.colored(sys.stderr, options.color)
    file = io.StringIO() if options.quiet else sys.stderr
    return Console(
        file=file, width=console.width(sys.stderr), color_system="standard" if colored else None, highlight=False, markup=False, emoji=False
    )


def _panel(first: Report, now: Report, ink: Ink) -> RenderableType:
    """One line per device, and one per counter that has risen."""
    table = ink.grid(4, None)
    before = {gpu.ref: gpu for gpu in first.gpus}
    for gpu in now.gpus:
        state = gpu.metric("state").value or "ok"
        gauges = ", ".join(_gauge(gpu, name, unit) for name, unit in GAUGES)
        table.add_row(ink(_number(gpu), "cyan"), ink.join((gpu.name, "bold"), f"  {gauges}" if state == "ok" else f"  {state}"))
        for text, style in _changes(before.get(gpu.ref), gpu):
            table.add_row("", ink(text, style))
    return table


def _number(gpu: GpuInfo) -> str:
    return "CPU" if gpu.source == "cpu" else str(gpu.ref.index)


def _gauge(gpu: GpuInfo, name: str, unit: str) -> str:
    reading = gpu.metric(name)
    return f"{reading.value:.0f} {unit}" if isinstance(reading.value, int | float) else f"{unit} not told"


def _changes(before: GpuInfo | None, now: GpuInfo) -> list[tuple[str, str]]:
    """What rose since the first reading, and Xid errors that are new."""
    lines: list[tuple[str, str]] = []
    for metric, words in COUNTERS.items():
        start, value = (before.metric(metric).value if before else None), now.metric(metric).value
        if value is None:
            continue
        risen = value - start if start is not None else 0
        if risen > 0:
            lines.append((f"{words}: {value} (+{risen} while watching)", "bold red"))
    lines += [(f"Xid {event['xid']} in the kernel log: {event['last']}", "bold red") for event in _new_xids(before, now)]
    return lines or [("counters unchanged" if now.metric("ecc_enabled").value else "no error counters here", "dim")]


def _new_xids(before: GpuInfo | None, now: GpuInfo) -> list[dict[str, Any]]:
    seen = {event["xid"]: event["count"] for event in (before.metric("xids").value or () if before else ())}
    return [event for event in now.metric("xids").value or () if event["count"] > seen.get(event["xid"], 0)]
