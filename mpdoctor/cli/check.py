"""`mpdoctor check`: will this config, script or checkpoint folder break?"""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpdoctor.cli.deliver import deliver
from mpdoctor.cli.options import ReportOptions, with_report_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mpdoctor.check.repair import Repair
    from mpdoctor.core.report import Report
    from mpdoctor.settings import Settings

# Collecting garbage while modules are loaded costs a tenth of this command's time and finds nothing.
gc.set_threshold(100_000, 50, 50)

_CONFIG = "Config"
MOST_ROUNDS = 5
"""How often a repaired file is looked at again for what else can be repaired."""


@with_report_options
def check(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Configs, scripts, folders, checkpoint folders, - for stdin; or `-- torchrun train.py --fp16 ...`."),
    ],
    with_: Annotated[
        list[str] | None, typer.Option("--with", metavar="FILE", rich_help_panel=_CONFIG, help="Another config of the same run. May be repeated.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_CONFIG,
            help="Take the config for this framework's (hf_trainer, deepspeed, ...) instead of recognising it.",
        ),
    ] = None,
    framework_version: Annotated[
        str | None, typer.Option(metavar="V", rich_help_panel=_CONFIG, help="Version of the framework, for its defaults and spellings (4, 5.24).")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", rich_help_panel=_CONFIG, help="Print what the files come to, setting by setting, and stop.")
    ] = False,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", rich_help_panel="Gate", help="Pass over files that are no training config; none at all is fine. For hooks."),
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", rich_help_panel="Repair", help="Print what --fix would change, and change nothing.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", rich_help_panel="Repair", help="Repair in the files what can be repaired safely, then judge them.")
    ] = False,
    baseline: Annotated[str | None, typer.Option(metavar="FILE", rich_help_panel="Gate", help="Leave out findings that this file knows.")] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", rich_help_panel="Gate", help="Write the findings to --baseline; they are accepted.")
    ] = False,
    *,
    options: ReportOptions,
) -> int:
    """Judge training configs before an hour of GPU time is spent.

    Files of one run are judged together: mpdoctor check train.yaml ds_config.json accelerate.yaml --gpu v100
    """
    from mpdoctor import api
    from mpdoctor.core.errors import UsageError
    from mpdoctor.core.gate import ExitCode
    from mpdoctor.settings import find_settings

    if update_baseline and not baseline:
        raise UsageError("--update-baseline needs --baseline FILE")
    if sum((show, diff, fix)) > 1:
        raise UsageError("--show, --diff and --fix exclude each other")
    files, launch = _split([*paths, *(with_ or [])])
    settings = find_settings()
    arguments: dict[str, Any] = {
        "gpus": options.gpu, "dialect": dialect, "framework_version": framework_version, "select": options.selected, "ignore": options.ignored,
        "baseline": None if update_baseline else baseline, "settings": _without_baseline(settings) if update_baseline else settings,
        "ignore_unknown": ignore_unknown,
    }  # fmt: skip
    if diff or fix:
        _repair(lambda: api.plan_repairs(files, **arguments), write=fix)
    report = api.run_check(files, launch=launch, **arguments)
    if show:
        from mpdoctor.cli.console import write_stdout
        from mpdoctor.cli.show import settings_table

        write_stdout(settings_table(report))
        return int(_gate(report, options, settings))
    if update_baseline and baseline:
        _write_baseline(report, baseline)
    code = _gate(report, options, settings) if diff else deliver(report, _with_settings(options, settings))
    accepted = (update_baseline and code == ExitCode.FINDINGS) or (ignore_unknown and code == ExitCode.NOT_JUDGED)
    return ExitCode.CLEAN if accepted else code


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Files, and the words of a launch line (`mpdoctor check -- torchrun train.py --fp16`), which starts with a launcher's name."""
    from pathlib import Path

    from mpdoctor.check.launchers import is_launch_line

    for index, word in enumerate(words):
        if is_launch_line(words[index:]) and len(words) > index + 1 and not Path(word).exists():
            return words[:index], words[index:]
    return words, []


def _with_settings(options: ReportOptions, settings: Settings) -> ReportOptions:
    """The settings file's gate, unless the command line names one."""
    named = any(word == "--fail-on" or word.startswith("--fail-on=") for word in sys.argv)
    return options if named or settings.fail_on is None else replace(options, fail_on=settings.fail_on)


def _gate(report: Report, options: ReportOptions, settings: Settings) -> int:
    """The exit code of a report that is not printed."""
    from mpdoctor.core.gate import ExitCode, exit_code

    chosen = _with_settings(options, settings)
    code = exit_code(report.outcome, report.findings, chosen.fail_on, crashed=bool(report.crashes), replay=False)
    return ExitCode.CLEAN if chosen.exit_zero and code in (ExitCode.FINDINGS, ExitCode.NOT_JUDGED) else code


def _repair(plan: Callable[[], list[Repair]], *, write: bool) -> None:
    """Print the repairs, or make them, until there is nothing left to repair: one edit may stand inside another's place."""
    from mpdoctor.cli import console
    from mpdoctor.report.characters import one_line, visible

    planned = plan()
    if not planned:
        console.say("nothing here can be repaired safely")
    for _ in range(MOST_ROUNDS):
        for repair in planned:
            if write:
                repair.write()
                console.say(f"repaired {one_line(repair.path)} ({', '.join(repair.codes)})")
            else:  # exact for `patch`, harmless on a terminal
                console.write_stdout(visible(repair.diff()) if sys.stdout.isatty() else repair.diff())
        planned = plan() if write and planned else []


def _write_baseline(report: Report, name: str) -> None:
    from pathlib import Path

    from mpdoctor.check.suppress import baseline_text
    from mpdoctor.cli import console
    from mpdoctor.core.errors import UnreadableInput

    path: Path = Path(name)
    try:
        path.write_text(baseline_text(report.findings), encoding="utf-8")
    except OSError as error:
        raise UnreadableInput(f"{name}: cannot be written: {error.strerror or error}") from None
    console.say(f"wrote {name}: {len(report.findings)} known findings")


def _without_baseline(settings: Settings) -> Settings:
    return settings._replace(baseline=None)
