"""What went wrong, in words, and the exit code for it. A crash never looks like a finding."""

from __future__ import annotations

import os
import platform
import sys
import traceback

import typer

from mpdoctor import __version__
from mpdoctor.cli import console
from mpdoctor.core.errors import MpdoctorError
from mpdoctor.core.gate import ExitCode

INTERRUPTED = 130
"""What shells give for a process ended by Ctrl-C."""

# typer re-exports a leaf of Click's error tree only, and since 0.26 it carries a Click of its own: BadParameter -> UsageError -> ClickException.
_USAGE_ERROR, _CLICK_ERROR = typer.BadParameter.__mro__[1:3]


def tell(error: BaseException, *, debug: bool) -> int:
    """Tell the user on stderr what happened, and return the exit code for it.

    Args:
        error: what ended the command.
        debug: whether to print the traceback of a bug.
    """
    match error:
        case MpdoctorError():
            return _known(error)
        case KeyboardInterrupt() | typer.Abort():
            console.say("interrupted")
            return INTERRUPTED
        case SystemExit():
            return error.code if isinstance(error.code, int) else ExitCode.CLEAN if error.code is None else ExitCode.USAGE
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.CLEAN
    if isinstance(error, _CLICK_ERROR):
        return _usage(error)
    return _bug(error, debug=debug)


def _known(error: MpdoctorError) -> int:
    console.error(error.message)
    if error.hint:
        console.hint(error.hint)
    return error.exit_code


def _usage(error: BaseException) -> int:
    """A wrong command line; Click's own words, in our form."""
    console.error(error.format_message().rstrip("."))  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    console.hint(f"see {context.command_path if context else 'mpdoctor'} --help")
    return ExitCode.USAGE


def _bug(error: BaseException, *, debug: bool) -> int:
    if debug:
        console.say("".join(traceback.format_exception(error)).rstrip())
    what = " ".join(str(error).split())[:300]
    console.error(f"mpdoctor has a bug: {type(error).__name__}{f': {what}' if what else ''}")
    advice = "please report the traceback above" if debug else "run again with --debug and please report what it prints"
    console.hint(f"{advice} (mpdoctor {__version__}, Python {platform.python_version()}, {platform.system()})")
    return ExitCode.BUG
