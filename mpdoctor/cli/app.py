"""`mpdoctor`: the commands, and the way from whatever happens to an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from mpdoctor import __version__
from mpdoctor.cli import failures

COMMANDS = ("gpu", "check", "replay", "explain", "rules", "recipe", "demo")
"""Modules of this package, one per command, in the order of `--help`. Imported when used."""


class LazyCommands(TyperGroup):
    """The commands, each imported when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)  # typer suggests near misses from these names

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        function = getattr(importlib.import_module(f"mpdoctor.cli.{cmd_name}"), cmd_name)
        single = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single.command(cmd_name, context_settings={"help_option_names": ["-h", "--help"]})(function)
        return typer.main.get_command(single)


app = typer.Typer(cls=LazyCommands, pretty_exceptions_enable=False, rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]})


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mpdoctor {__version__}")  # noqa: T201 - this is the command's output
        raise typer.Exit


@app.callback(invoke_without_command=True)
def mpdoctor(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """Find out why a mixed-precision PyTorch training run broke, and what to change.

    \b
    mpdoctor demo fp16-overflow                    what a report looks like
    mpdoctor check train.yaml --gpu v100           before the run: will it break?
    mpdoctor replay CHECKPOINT --data train.jsonl  after it broke: why?
    mpdoctor replay --recipe recipe.py             any model and loop

    Exit codes: 0 fine, 1 findings or a failure, 2 wrong usage or unreadable input, 3 could not judge, 4 a bug of mpdoctor.
    How a verdict is reached: mpdoctor explain verdict.
    """  # noqa: D301 - the backspace keeps typer from joining the lines
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


def run(arguments: list[str]) -> int:
    """Run one command line and return the process's exit code. Never raises."""
    try:
        code = app(arguments, prog_name="mpdoctor", standalone_mode=False)
        if code == failures.INTERRUPTED:  # typer has swallowed the KeyboardInterrupt
            raise KeyboardInterrupt
        return int(code or 0)
    except BaseException as error:
        return failures.tell(error, debug="--debug" in arguments)


def main() -> NoReturn:
    """The console script."""
    code = run(sys.argv[1:])
    if "torch" in sys.modules:
        sys.exit(code)
    # Nothing here needs an orderly end, and taking the interpreter apart would cost a tenth of the time of `gpu` and `check`.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has gone away
            stream.flush()
    os._exit(code)
