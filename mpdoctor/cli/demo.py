"""`mpdoctor demo`: small runs that break, replayed in seconds, with what to notice."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli import console
from mpdoctor.cli.options import ReportOptions, with_report_options
from mpdoctor.core.errors import UsageError
from mpdoctor.core.gate import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A bundled run: name, what happens in it, what to notice in the report, and the recipe's file."""

    name: str
    title: str
    notice: str
    path: Path


def demos() -> Iterator[Demo]:
    """All bundled runs, read from their docstrings."""
    folder = Path(__file__).parent.parent / "demos"
    for path in sorted(folder.glob("[a-z]*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        title, _, notice = docstring.partition("\n")
        yield Demo(name=path.stem.replace("_", "-"), title=title.strip(), notice=notice.strip(), path=path)


def _names(incomplete: str) -> list[str]:
    return [entry.name for entry in demos() if entry.name.startswith(incomplete)]


@with_report_options
def demo(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", autocompletion=_names, help="The run to replay. Without it: the list.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the run's code, a recipe to start from, instead of replaying it.")] = False,
    *,
    options: ReportOptions,
) -> int:
    """Replay a small run that breaks: what a report looks like, and what to notice in it.

    Example: mpdoctor demo fp16-overflow
    """
    known = {entry.name: entry for entry in demos()}
    if name is None:
        console.write_stdout(_list(list(known.values())))
        return ExitCode.CLEAN
    chosen = known.get(name.lower().replace("_", "-"))
    if chosen is None:
        near = get_close_matches(name, known, n=3)
        raise UsageError(f"no demo is called {name!r}", f"did you mean {', '.join(near)}?" if near else f"choose one of: {', '.join(known)}")
    if show:
        console.write_stdout(chosen.path.read_text(encoding="utf-8"))
        return ExitCode.CLEAN

    from mpdoctor import api
    from mpdoctor.cli.deliver import deliver
    from mpdoctor.cli.progress import shown

    if not options.quiet:
        console.say(f"{chosen.title}\n")
    with shown(quiet=options.quiet, color=options.color) as progress:
        report = api.run_replay(recipe=chosen.path, gpus=tuple(options.gpu), select=options.selected, ignore=options.ignored, progress=progress)
    code = deliver(report, options)
    if not options.quiet:
        console.say("\nWhat to notice\n" + textwrap.fill(" ".join(chosen.notice.split()), console.width(sys.stderr)))
        console.say(f"\nIts code: mpdoctor demo {chosen.name} --show")
    return code


def _list(entries: list[Demo]) -> str:
    width = max(len(entry.name) for entry in entries)
    lines = [f"  {entry.name:<{width}}  {entry.title}" for entry in entries]
    return "\n".join(["Runs that break, and one that does not:", "", *lines, "", "Replay one: mpdoctor demo NAME"]) + "\n"
