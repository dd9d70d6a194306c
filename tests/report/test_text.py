"""The text report."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from mpdoctor.core.report import Report
from mpdoctor.report.renderer import RenderOptions, load

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def text(report: Report, **options: object) -> str:
    return load("text").render(report, RenderOptions(**options))


@pytest.mark.parametrize("name", ["overflow", "healthy", "checked", "not-judged", "machine", "hostile"])
def test_at_80_columns(name: str, reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert text(reports[name]) == snapshot


def test_in_ascii(reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert text(reports["overflow"], ascii=True) == snapshot


def test_quiet_keeps_the_answer(reports: dict[str, Report], snapshot: SnapshotAssertion) -> None:
    assert text(reports["overflow"], quiet=True) == snapshot


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_terminal(report: Report, width: int, ascii_only: bool) -> None:
    assert max(map(cell_len, text(report, width=width, ascii=ascii_only).splitlines())) <= width


def test_colour_changes_no_character(report: Report) -> None:
    colored = text(report, color=True)
    assert "\x1b[" in colored
    assert [line.rstrip() for line in ANSI.sub("", colored).splitlines()] == [line.rstrip() for line in text(report).splitlines()]


def test_ascii_means_ascii(report: Report) -> None:
    assert text(report, ascii=True).isascii()


def test_no_control_character_of_the_input_reaches_the_terminal(reports: dict[str, Report]) -> None:
    plain = text(reports["hostile"])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", plain)
    assert r"\x1b[31mred" in plain


def test_markup_of_the_input_is_text(reports: dict[str, Report]) -> None:
    assert "[bold]x[/bold]" in text(reports["hostile"])


def test_clean_and_not_judged_look_different(reports: dict[str, Report]) -> None:
    assert text(reports["healthy"]).splitlines()[0].strip() == "✓ HEALTHY"
    assert text(reports["not-judged"]).splitlines()[0].strip() == "? COULD NOT JUDGE"


def test_the_answer_comes_first(reports: dict[str, Report]) -> None:
    head = text(reports["overflow"]).split("Checklist")[0]
    for needed in ("fp16-range", "confirmed", "blocks.1.wo", "train.py:12", "66246", "Train in bf16", "+bf16: true"):
        assert needed in head


def test_skipped_rules_are_grouped_by_reason(reports: dict[str, Report]) -> None:
    assert "CFG120, CFG121: unknown: n_params" in text(reports["checked"])
