"""Text for a terminal, a pipe or a log: the answer first, then what led to it."""

from __future__ import annotations

from mpdoctor.core.report import Report
from mpdoctor.report.characters import to_ascii
from mpdoctor.report.renderer import Renderer, RenderOptions
from mpdoctor.report.sections.findings import findings
from mpdoctor.report.sections.headline import headline
from mpdoctor.report.sections.ink import Ink
from mpdoctor.report.sections.layout import Block, Line, ansi
from mpdoctor.report.sections.remainder import circumstances, crashes, not_looked_at, notes


def render(report: Report, options: RenderOptions) -> str:
    """The report at `options.width` columns, with a blank line between its parts."""
    ink = Ink(ascii=options.ascii, quiet=options.quiet, width=options.width)
    page: list[Line] = []
    for index, part in enumerate(part for part in _parts(report, ink) if part):
        if index and not options.quiet:
            page.append([])
        for block in part:
            page += block.lines(options.width)
    rows = (ansi(line) if options.color else "".join(text for text, _ in line) for line in page)
    lines = "\n".join(row.rstrip() for row in rows) + "\n"
    return to_ascii(lines) if options.ascii else lines


def _parts(report: Report, ink: Ink) -> list[list[Block]]:
    """The parts that a command's report has. Only their modules are imported: `gpu` and `check` must start fast."""
    closing = [not_looked_at(report, ink), crashes(report, ink), notes(report, ink), circumstances(report, ink)]
    if report.command == "gpu":
        from mpdoctor.report.gpu_section import gpu_section

        return [headline(report, ink), gpu_section(report, ink), findings(report, ink), *closing]
    from mpdoctor.report.sections.checklist import checklist

    if report.command == "check":
        return [headline(report, ink), findings(report, ink), checklist(report, ink), *closing]
    from mpdoctor.report.sections.experiments import experiments
    from mpdoctor.report.sections.remainder import measurements
    from mpdoctor.report.sections.steps import steps
    from mpdoctor.report.sections.timeline import timeline

    return [
        headline(report, ink),
        checklist(report, ink),
        timeline(report, ink),
        experiments(report, ink),
        steps(report, ink),
        measurements(report, ink),
        findings(report, ink),
        *closing,
    ]


RENDERER = Renderer(render=render, suffix=".txt")
