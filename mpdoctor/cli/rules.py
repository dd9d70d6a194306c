"""`mpdoctor rules`: the list of all rules, detectors and experiments."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mpdoctor.catalogue import RuleEntry
from mpdoctor.catalogue import rules as all_rules
from mpdoctor.cli import console
from mpdoctor.cli.explain import PageFormat
from mpdoctor.core.errors import UsageError
from mpdoctor.core.gate import ExitCode


def rules(
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only codes that start with this (CFG2, RUN).")] = "",
    output_format: Annotated[PageFormat, typer.Option(help="How to print the list.")] = PageFormat.TEXT,
    color: Annotated[console.Color, typer.Option(help="Colours; auto follows the terminal, NO_COLOR and FORCE_COLOR.")] = console.Color.AUTO,
    ascii: Annotated[bool, typer.Option("--ascii", help="ASCII characters only.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback if mpdoctor itself fails.")] = False,
) -> int:
    """List every rule of `gpu` and `check`, and every detector and experiment of `replay`.

    Example: mpdoctor rules CFG2
    """
    chosen = [entry for entry in all_rules() if entry.code.startswith(prefix.upper())]
    if not chosen:
        families = sorted({entry.code[:3] for entry in all_rules()})
        raise UsageError(f"no rule's code starts with {prefix!r}", f"families: {', '.join(families)}")
    match output_format:
        case PageFormat.TEXT:
            console.write_stdout(_table(chosen, color=console.colored(sys.stdout, color), ascii_only=ascii))
        case PageFormat.MARKDOWN:
            console.write_stdout(markdown_table(chosen))
        case PageFormat.JSON:
            from mpdoctor.core.jsonable import to_json
            from mpdoctor.encyclopedia import rule_facts

            console.write_stdout(to_json([rule_facts(entry) for entry in chosen], ascii_only=ascii) + "\n")
    return ExitCode.CLEAN


def markdown_table(entries: list[RuleEntry]) -> str:
    """The rules as a Markdown table (the README's is made by this)."""
    lines = ["| code | name | severity | cause | what it looks for |", "| --- | --- | --- | --- | --- |"]
    for entry in entries:
        severity = entry.severity.value if entry.severity else "–"
        summary = entry.doc.summary.replace("|", "\\|")
        lines.append(f"| {entry.code} | {entry.slug} | {severity} | {', '.join(entry.causes) or '–'} | {summary} |")
    return "\n".join(lines) + "\n"


def _table(entries: list[RuleEntry], *, color: bool, ascii_only: bool) -> str:
    """Code, severity and name on one line, what it looks for under it: legible at any width."""
    import io

    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from mpdoctor.report.characters import to_ascii

    text = io.StringIO()
    terminal = Console(file=text, width=console.width(sys.stdout), color_system="standard" if color else None, force_terminal=color, highlight=False)
    tones = {"error": "red", "warning": "yellow", "info": "blue"}
    for entry in entries:
        severity = entry.severity.value if entry.severity else entry.kind
        causes = f"  {', '.join(entry.causes)}" if entry.causes else ""
        terminal.print(Text.assemble((entry.code, "bold"), "  ", (f"{severity:<10}", tones.get(severity, "dim")), "  ", entry.slug, (causes, "dim")))
        terminal.print(Padding(Text(entry.doc.summary, style="dim"), (0, 0, 0, len(entry.code) + 2)))
    terminal.print(Text(f"\n{len(entries)} in all; `mpdoctor explain CODE` shows one", style="dim"))
    lines = "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
    return to_ascii(lines) if ascii_only or not console.encodable(lines, sys.stdout) else lines
