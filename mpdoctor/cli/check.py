"""`mpdoctor check`: will this config, script or checkpoint folder break?"""

from __future__ import annotations

from typing import Annotated

import typer

from mpdoctor.cli.deliver import deliver
from mpdoctor.cli.options import ReportOptions, with_report_options


@with_report_options
def check(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Configs, folders, checkpoint folders; - is stdin. Files of one run are judged together.")
    ],
    dialect: Annotated[str | None, typer.Option(metavar="NAME", help="Take the config for this dialect (hf_trainer, deepspeed, ...).")] = None,
    framework_version: Annotated[
        str | None, typer.Option(metavar="V", help="Version of the framework, for its defaults and spellings (4, 5.24).")
    ] = None,
    *,
    options: ReportOptions,
) -> int:
    """Judge training configs before an hour of GPU time is spent.

    Example: mpdoctor check train.yaml ds_config.json --gpu v100
    """
    from mpdoctor import api

    report = api.run_check(
        paths, gpus=options.gpu, dialect=dialect, framework_version=framework_version, select=options.selected, ignore=options.ignored,
    )  # fmt: skip
    return deliver(report, options)
