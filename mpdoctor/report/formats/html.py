"""HTML: one self-contained file, without scripts and without network, that reads well on a screen, on paper and to a screen reader."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mpdoctor.core.errors import MissingDependency
from mpdoctor.core.report import Report
from mpdoctor.report.characters import to_ascii, visible
from mpdoctor.report.renderer import Renderer, RenderOptions

if TYPE_CHECKING:
    from jinja2 import Template


def check() -> None:
    """Raises MissingDependency without jinja2, which is an optional dependency."""
    if find_spec("jinja2") is None:
        raise MissingDependency("the HTML report needs jinja2, which is not installed", "pip install 'mpdoctor[html]'")


def render(report: Report, options: RenderOptions) -> str:
    """The page."""
    check()
    from mpdoctor.report.html.page import context

    text = _template(ascii_only=options.ascii).render(context(report, options)) + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii") if options.ascii else text


@cache
def _template(*, ascii_only: bool) -> Template:
    import jinja2

    def finalize(value: object) -> object:
        """What a variable shows: content without control characters; markup made here is left alone."""
        if type(value) is not str:
            return value
        return visible(to_ascii(value) if ascii_only else value)

    folder = files("mpdoctor.report.html").joinpath("templates")
    sources = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.html", "style.css", "parts.html")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(sources), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=finalize
    )
    return environment.get_template("report.html")


RENDERER = Renderer(render=render, suffix=".html", for_reading=False, check=check)
