"""A page of documentation (Markdown) on a terminal."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

from mpdoctor.cli import console

if TYPE_CHECKING:
    from rich.console import RenderableType

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```\n?", re.MULTILINE | re.DOTALL)


def show(markdown: str, *, color: console.Color, ascii_only: bool = False) -> None:
    """Print a page: headings flush left, examples behind a bar, the rest as rich renders Markdown."""
    from rich.console import Console

    text = io.StringIO()
    terminal = Console(
        file=text,
        width=min(console.width(sys.stdout), 100),
        force_terminal=console.colored(sys.stdout, color),
        color_system="standard" if console.colored(sys.stdout, color) else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for part in _parts(markdown, bar="|" if ascii_only else "│"):
        terminal.print(part)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    page = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"
    if ascii_only or not console.encodable(page, sys.stdout):
        from mpdoctor.report.characters import to_ascii

        page = to_ascii(page)
    console.write_stdout(page)


def _parts(markdown: str, *, bar: str) -> list[RenderableType]:
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []

    def prose(text: str) -> None:
        for block in re.split(r"(?m)^(#{1,3} .*)$", text):
            if heading := re.match(r"(#{1,3}) (.*)", block):
                style = "bold underline" if len(heading[1]) == 1 else "bold cyan"
                parts.extend([Text(""), Text(heading[2], style=style), Text("")])
            elif block.strip():
                parts.append(Padding(Markdown(block.strip(), inline_code_theme=None), (0, 0, 1, 0)))

    position = 0
    for fence in _FENCE.finditer(markdown):
        prose(markdown[position : fence.start()])
        words = fence["info"].split()
        if label := " · ".join([*words[2:3], *words[1:2]] if len(words) > 1 else words):
            parts.append(Text(f"  {label}", style={"bad": "red", "good": "green"}.get(words[2] if len(words) > 2 else "", "dim")))
        parts.extend(Text.assemble((f"  {bar} ", "dim"), line) for line in fence["text"].rstrip().splitlines())
        parts.append(Text(""))
        position = fence.end()
    prose(markdown[position:])
    return parts
