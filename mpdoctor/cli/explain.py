"""`mpdoctor explain`: the page of a rule, a cause or a number format."""

from __future__ import annotations

from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated

import typer

from mpdoctor.cli import console
from mpdoctor.core.errors import UsageError
from mpdoctor.core.gate import ExitCode


class PageFormat(StrEnum):
    """`--output-format` of pages."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def _names(incomplete: str) -> list[str]:
    from mpdoctor import encyclopedia

    return [name for name in encyclopedia.names() if name.lower().startswith(incomplete.lower())]


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=_names,
            help="A rule (CFG201, or its slug), a cause (loss-scaling), a number format (bf16), a number (1e-8), or a topic (verdict). "
            "Without it: everything that can be explained.",
        ),
    ] = None,
    output_format: Annotated[PageFormat, typer.Option(help="How to print the page.")] = PageFormat.TEXT,
    color: Annotated[console.Color, typer.Option(help="Colours; auto follows the terminal, NO_COLOR and FORCE_COLOR.")] = console.Color.AUTO,
    ascii: Annotated[bool, typer.Option("--ascii", help="ASCII characters only.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback if mpdoctor itself fails.")] = False,
) -> int:
    """What a finding means, why it breaks training, and how to confirm it; what a cause is; what a number format can hold.

    Example: mpdoctor explain fp16
    """
    from mpdoctor import encyclopedia

    if name is None:
        page = encyclopedia.contents()
    else:
        found = encyclopedia.look_up(name)
        if found is None:
            known = {entry.lower(): entry for entry in encyclopedia.names()}
            near = [known[entry] for entry in get_close_matches(name.lower(), known, n=3)]
            raise UsageError(f"nothing is called {name!r}", f"did you mean {', '.join(near)}?" if near else "`mpdoctor explain` lists all names")
        page = found
    match output_format:
        case PageFormat.TEXT:
            from mpdoctor.cli.page import show

            show(page.markdown, color=color, ascii_only=ascii)
        case PageFormat.MARKDOWN:
            console.write_stdout(page.markdown.rstrip() + "\n")
        case PageFormat.JSON:
            from mpdoctor.core.jsonable import to_json

            console.write_stdout(to_json(page.facts | {"markdown": page.markdown}, ascii_only=ascii) + "\n")
    return ExitCode.CLEAN
