"""Markdown for pull requests and issues."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.report import Report
from mpdoctor.report.renderer import RenderOptions, load


def markdown(report: Report) -> str:
    return load("markdown").render(report, RenderOptions())


@pytest.mark.parametrize("name", ["overflow", "checked"])
def test_the_document(name: str, reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert markdown(reports[name]) == snapshot


def test_the_answer_is_in_sight_and_short(reports: dict[str, Report]) -> None:
    in_sight = re.sub(r"(?s)<details>.*?</details>\n*", "", markdown(reports["overflow"]))
    assert len(in_sight.splitlines()) <= 60
    for needed in ("`fp16-range` confirmed", "`train.py:12`", "66246", "Train in bf16", "+bf16: true"):
        assert needed in in_sight


def test_details_are_closed(report: Report) -> None:
    text = markdown(report)
    assert text.count("<details>") == text.count("</details>")


def test_content_stays_text(reports: dict[str, Report]) -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(markdown(reports["hostile"]))
    assert "<script>" not in html
    assert "<strong>x" not in html
    assert "\x1b" not in html


def test_nobody_is_mentioned() -> None:
    from mpdoctor.report.formats.markdown import text_of

    assert "@" not in text_of("ask @someone about #12").replace("&#64;", "")


def test_tables_keep_their_columns(report: Report) -> None:
    columns = 0
    for line in markdown(report).splitlines():
        if line.startswith("| "):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert columns in (0, cells)
            columns = cells
        else:
            columns = 0
