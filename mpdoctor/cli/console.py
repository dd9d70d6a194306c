"""Where text goes: stdout carries the report and nothing else, stderr carries everything else."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from typing import TextIO

from mpdoctor.report.characters import one_line, visible

MAX_WIDTH = 120
"""Longer lines are hard to read."""


class Color(StrEnum):
    """`--color`: whether to colour what goes to a terminal."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def colored(stream: TextIO, choice: Color = Color.AUTO) -> bool:
    """Whether to write ANSI colours to `stream`.

    `--color` wins; then `NO_COLOR` (https://no-color.org) and `FORCE_COLOR`; else colours go to terminals that can show them.
    """
    if choice is not Color.AUTO:
        return choice is Color.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width(stream: TextIO) -> int:
    """Columns to fill: those of the terminal (or of `COLUMNS`) up to 120; 80 where there is neither."""
    if stream.isatty() or os.environ.get("COLUMNS"):
        return max(40, min(shutil.get_terminal_size((80, 24)).columns, MAX_WIDTH))
    return 80


def encodable(text: str, stream: TextIO) -> bool:
    """Whether the stream's encoding holds every character of `text`."""
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def write_stdout(text: str) -> None:
    """Write to stdout. A reader that has gone away (`| head`) is no error, and does not change the exit code."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit; give it something that can be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, *, label: str = "", style: str = "1") -> None:
    """One message on stderr, after an optional bold label (`error`, `hint`). `style` is an ANSI code.

    Control characters, which names of files may hold, are spelled out.
    """
    text = visible(text)
    if label:
        mark = f"\x1b[{style}m{label}:\x1b[0m" if colored(sys.stderr) else f"{label}:"
        text = f"{mark} {text}"
    try:
        sys.stderr.write(text.encode(sys.stderr.encoding or "ascii", "backslashreplace").decode(sys.stderr.encoding or "ascii") + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def error(text: str) -> None:
    """An error message on stderr: one line, whatever it quotes."""
    say(one_line(text), label="error", style="1;31")


def hint(text: str) -> None:
    """The way out, after an error."""
    say(text, label="hint", style="1;36")
