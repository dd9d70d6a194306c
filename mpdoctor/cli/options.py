"""The options that every command with a report shares."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from mpdoctor.cli.console import Color
from mpdoctor.core.gate import FailOn
from mpdoctor.core.record import dataclass

_CODE = re.compile(r"[A-Za-z]{3}[0-9]{0,3}")
_OUTPUT, _GATE, _DISPLAY = "Output", "Gate", "Display"


def _formats(incomplete: str) -> list[str]:
    from mpdoctor.report.renderer import format_names

    return [name for name in format_names() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """One field per shared option; `with_report_options` gives them to a command."""

    output_format: Annotated[
        list[str],
        typer.Option(
            autocompletion=_formats,
            metavar="FORMAT[=FILE]",
            rich_help_panel=_OUTPUT,
            help="text (default), json, sarif, junit, github, gitlab, markdown or html; with =FILE as a file besides the text. May be repeated.",
        ),
    ] = field(default_factory=list)
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_OUTPUT,
            help="Write the report here instead of to stdout; without --output-format the file's suffix chooses the format.",
        ),
    ] = None
    fail_on: Annotated[FailOn, typer.Option(rich_help_panel=_GATE, help="Lowest severity that makes the exit code 1.")] = FailOn.ERROR
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", rich_help_panel=_GATE, help="Exit 0 whatever the report says; errors keep their code.")
    ] = False
    select: Annotated[
        list[str], typer.Option(metavar="CODES", rich_help_panel=_GATE, help="Only these rules: codes, prefixes (CFG2) or slugs, with commas.")
    ] = field(default_factory=list)
    ignore: Annotated[list[str], typer.Option(metavar="CODES", rich_help_panel=_GATE, help="Not these rules; wins over --select.")] = field(
        default_factory=list
    )
    gpu: Annotated[
        list[str],
        typer.Option(
            metavar="NAME|CC|auto", rich_help_panel=_GATE, help="Judge for this GPU, which need not be here (v100, 'RTX 4090', 7.5). May be repeated."
        ),
    ] = field(default_factory=list)
    color: Annotated[Color, typer.Option(rich_help_panel=_DISPLAY, help="Colours; auto follows the terminal, NO_COLOR and FORCE_COLOR.")] = Color.AUTO
    anonymous: Annotated[
        bool,
        typer.Option("--anonymous", rich_help_panel=_OUTPUT, help="Leave out paths, user, host, and names of models and data, to post the report."),
    ] = False
    ascii: Annotated[bool, typer.Option("--ascii", rich_help_panel=_DISPLAY, help="ASCII characters only.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel=_DISPLAY, help="The answer alone, without what led to it.")] = False
    debug: Annotated[bool, typer.Option("--debug", rich_help_panel=_DISPLAY, help="Show the traceback if mpdoctor itself fails.")] = False

    @property
    def selected(self) -> tuple[str, ...]:
        """Entries of `--select`, commas taken apart."""
        return _codes(self.select)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Entries of `--ignore`, commas taken apart."""
        return _codes(self.ignore)


def _codes(values: list[str]) -> tuple[str, ...]:
    entries = [code.strip() for value in values for code in value.split(",") if code.strip()]
    return tuple(entry.upper() if _CODE.fullmatch(entry) else entry for entry in entries)


def with_report_options(command: Callable[..., int]) -> Callable[..., int]:
    """Decorator: the command's parameter `options` becomes one command-line option per field of `ReportOptions`.

    What can be wrong with these options is told before the command starts its work.
    """
    hints = get_type_hints(command, include_extras=True)
    shared_hints = get_type_hints(ReportOptions, include_extras=True)
    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(command).parameters.values() if p.name != "options"]
    shared = [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, annotation=shared_hints[f.name], default=None if f.default is MISSING else f.default
        )
        for f in fields(ReportOptions)
    ]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> int:
        from mpdoctor.cli.deliver import check

        names = {f.name for f in fields(ReportOptions)}
        options = ReportOptions(**{name: [] if arguments[name] is None and name != "output" else arguments[name] for name in names})
        check(options)
        return command(**{name: value for name, value in arguments.items() if name not in names}, options=options)

    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapped.__signature__ = inspect.Signature(keyword + shared, return_annotation=int)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in keyword + shared} | {"return": int}
    del wrapped.__wrapped__  # typer would read the signature of the original
    return wrapped
