"""From a report to its destinations, and to the exit code."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.cli import console
from mpdoctor.core.errors import UnreadableInput, UsageError
from mpdoctor.core.gate import ExitCode, exit_code
from mpdoctor.core.record import dataclass
from mpdoctor.report.renderer import Renderer, RenderOptions, format_names, load

if TYPE_CHECKING:
    from mpdoctor.cli.options import ReportOptions
    from mpdoctor.core.report import Report
    from mpdoctor.core.rule import RuleDoc

FILE_WIDTH = 100
"""Columns of a text report that goes to a file."""


@dataclass(frozen=True, slots=True)
class Destination:
    """One rendering of the report: the format, and the file that takes it (None: stdout)."""

    format: str
    path: Path | None


def destinations(options: ReportOptions) -> tuple[Destination, ...]:
    """Where the report goes. A format with `=FILE` is extra; the one without goes to `--output` or stdout, and is text unless named."""
    extra, plain = [], []
    for value in options.output_format:
        name, separator, file = value.partition("=")
        if separator and not file:
            raise UsageError(f"--output-format {value}: no file after the equals sign", f"write {name}=FILE, or {name} alone for stdout")
        load(name)
        if separator:
            extra.append(Destination(name, Path(file)))
        elif name not in plain:
            plain.append(name)
    if len(plain) > 1:
        raise UsageError(f"only one format can go to stdout, not {' and '.join(plain)}", f"give the others a file: --output-format {plain[1]}=FILE")
    if plain or options.output or not any(d.format == "text" for d in extra):
        main = plain[0] if plain else _format_of(options.output)
        extra.append(Destination(main, options.output))
    paths = [d.path.absolute() for d in extra if d.path]
    if len(set(paths)) < len(paths):
        raise UsageError("two formats would be written to the same file", "give each format a file of its own")
    return tuple(extra)


def check(options: ReportOptions) -> None:
    """Tell what is wrong with the options now, not after an hour of replay. Raises MpdoctorError."""
    for destination in destinations(options):
        renderer = load(destination.format)
        renderer.check()
        if destination.path is None:
            _check_stdout(destination.format, renderer)
        else:
            _check_file(destination.path)
    _check_codes(options)


def deliver(report: Report, options: ReportOptions) -> int:
    """Write the report to all its destinations and return the exit code, which no format changes."""
    if options.anonymous:
        from mpdoctor.report.anonymous import anonymised

        report = anonymised(report)
    for destination in destinations(options):
        renderer = load(destination.format)
        if destination.path is None:
            console.write_stdout(_for_stdout(report, renderer, options))
        else:
            text = renderer.render(
                report, RenderOptions(width=FILE_WIDTH, ascii=options.ascii, quiet=options.quiet, fail_on=options.fail_on, rule_page=_rule_page)
            )
            _write(destination.path, text)
            if not options.quiet:
                console.say(f"wrote {destination.path} ({destination.format})")
    code = exit_code(report.outcome, report.findings, options.fail_on, crashed=bool(report.crashes), replay=report.command == "replay")
    for crash in report.crashes:
        console.error(f"mpdoctor has a bug: {crash.what}: {crash.error}")
        if options.debug:
            console.say(crash.traceback.rstrip())
    if options.exit_zero and code in (ExitCode.FINDINGS, ExitCode.NOT_JUDGED):
        return ExitCode.CLEAN
    return code


def _for_stdout(report: Report, renderer: Renderer, options: ReportOptions) -> str:
    def rendered(*, ascii_only: bool) -> str:
        return renderer.render(
            report,
            RenderOptions(
                width=console.width(sys.stdout),
                color=console.colored(sys.stdout, options.color),
                ascii=ascii_only,
                quiet=options.quiet,
                fail_on=options.fail_on,
                rule_page=_rule_page,
            ),
        )

    text = rendered(ascii_only=options.ascii)
    return text if console.encodable(text, sys.stdout) else rendered(ascii_only=True)


def _rule_page(code: str) -> RuleDoc | None:
    from mpdoctor.catalogue import find_rule

    entry = find_rule(code)
    return entry.doc if entry else None


def _format_of(path: Path | None) -> str:
    """The format that a file's suffix stands for; text when none does."""
    if path is None or path.suffix in ("", ".txt"):
        return "text"
    matching = [name for name in format_names() if path.name.endswith(load(name).suffix)]
    return max(matching, key=lambda name: len(load(name).suffix), default="text")


def _check_stdout(name: str, renderer: Renderer) -> None:
    if not renderer.for_reading and sys.stdout.isatty():
        raise UsageError(f"{name} is not made for a terminal", f"write it to a file: --output-format {name}=report{renderer.suffix}")


def _check_file(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder", "name a file")
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {folder}", f"create it first: mkdir -p {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"cannot write {path}: permission denied", "choose another file")


def _check_codes(options: ReportOptions) -> None:
    """Unknown codes are told: a gate that ignores a mistyped code checks something else than it seems to."""
    wanted = options.selected + options.ignored
    if not wanted:
        return
    from mpdoctor.catalogue import rules

    known = rules()
    for entry in wanted:
        if not any(rule.code.startswith(entry) or rule.slug == entry for rule in known):
            near = get_close_matches(entry, [rule.code for rule in known] + [rule.slug for rule in known], n=3)
            raise UsageError(f"no rule is called {entry!r}", f"did you mean {', '.join(near)}?" if near else "`mpdoctor rules` lists all rules")


def _write(path: Path, text: str) -> None:
    """Write a whole file or none: a reader never sees half a report."""
    try:
        import tempfile

        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            path.write_text(text, encoding="utf-8")
            return
        handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UnreadableInput(f"cannot write {path}: {error.strerror or error}", "choose another file") from error
