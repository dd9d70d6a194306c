"""`mpdoctor gpu`: which precision can this machine train in, and is the hardware healthy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli.options import ReportOptions, with_report_options


@with_report_options
def gpu(
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT[:LEVEL]", help="Exit 1 unless every device has it: fp16, bf16, tf32, fp8, fp4; :native is the default."),
    ] = None,
    torch: Annotated[bool, typer.Option("--torch", help="Also import torch (in a process of its own) and compare what it claims.")] = False,
    watch: Annotated[float | None, typer.Option(min=0.2, metavar="SECONDS", help="Show the table live, read again every SECONDS.")] = None,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="With --watch: stop after N readings.")] = None,
    timeout: Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="How long the vendors' libraries may take.")] = 30.0,
    kernel_log: Annotated[Path | None, typer.Option(metavar="FILE", help="Kernel log to look for Xid errors in (dmesg > FILE).")] = None,
    sysroot: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Judge a recorded machine: its sys/ and proc/ are in FOLDER.")] = None,
    *,
    options: ReportOptions,
) -> int:
    """Every device: what it trains in natively, what it only emulates, what to set, and its health.

    Exit codes: 0 nothing wrong (no GPU is not wrong), 1 findings or a requirement that is not met, 2 wrong usage, 4 a bug.

    Example: mpdoctor gpu --require bf16
    """
    from functools import partial

    from mpdoctor import api
    from mpdoctor.cli.deliver import deliver

    read = partial(
        api.run_gpu,
        gpus=tuple(options.gpu),
        require=tuple(require or ()),
        torch=torch,
        limit=timeout,
        sysroot=sysroot,
        kernel_log=kernel_log,
        select=options.selected,
        ignore=options.ignored,
    )
    if watch is None:
        return deliver(read(), options)
    from mpdoctor.cli.watch import watched

    return deliver(watched(read, every=watch, count=count, options=options), options)
