"""JSON: the whole report in the schema `mpdoctor.report/1`."""

from __future__ import annotations

from mpdoctor.core.jsonable import to_json
from mpdoctor.core.report import Report
from mpdoctor.report.document import document
from mpdoctor.report.renderer import Renderer, RenderOptions


def render(report: Report, options: RenderOptions) -> str:
    """The report as strict JSON; ASCII only when that is asked for."""
    return to_json(document(report), ascii_only=options.ascii) + "\n"


RENDERER = Renderer(render=render, suffix=".json")
