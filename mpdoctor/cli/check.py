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

    files, launch = _split(paths)
    report = api.run_check(
        files,
        gpus=options.gpu,
        dialect=dialect,
        framework_version=framework_version,
        launch=launch,
        select=options.selected,
        ignore=options.ignored,
    )
    return deliver(report, options)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Files, and the words of a launch line (`mpdoctor check -- torchrun train.py --fp16`), which starts with a launcher's name."""
    from pathlib import Path

    from mpdoctor.check.launchers import is_launch_line

    for index, word in enumerate(words):
        if not Path(word).exists() and is_launch_line(words[index:]) and len(words) > index + 1:
            return words[:index], words[index:]
    return words, []
