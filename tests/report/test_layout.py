"""Wrapping and columns of the text report, against rich, which fills lines the same way."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as RichText

from mpdoctor.report.sections.layout import Grid, Indented, Line, Stack, Text, ansi, columns

WORDS = st.text(alphabet="ab c語é", max_size=40)


def shown(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def by_rich(text: str, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    console.print(RichText(text, overflow="fold"))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@given(st.lists(st.text(alphabet="abc語", min_size=1, max_size=4), max_size=12), st.integers(8, 30), st.integers(0, 40))
def test_words_are_wrapped_as_rich_wraps_them(words: list[str], width: int, cut: int) -> None:
    text = " ".join(words)
    assert shown(list(Text((text[:cut], "bold"), (text[cut:], "")).lines(width))) == (by_rich(text, width) or [""])


@given(WORDS, st.integers(2, 30))
def test_no_character_is_lost_and_no_line_is_too_wide(text: str, width: int) -> None:
    lines = ["".join(part for part, _ in line) for line in Text((text, "")).lines(width)]
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(columns(line) <= width for line in lines)


@settings(max_examples=300)
@given(WORDS, st.integers(9, 30))
def test_no_line_is_wider_than_asked(text: str, width: int) -> None:
    grid = Grid(3, None)
    grid.add_row("abc", Stack(Text((text, "red")), Indented(Text((text, "")), 2)))
    assert all(columns("".join(part for part, _ in line)) <= width for line in grid.lines(width))


@given(WORDS)
def test_columns_are_counted_as_rich_counts_them(text: str) -> None:
    assert columns(text) == cell_len(text)


def test_styles_survive_a_line_break() -> None:
    lines = list(Text(("red words", "red"), (" plain", "")).lines(6))
    assert lines == [[("red", "red")], [("words", "red")], [("plain", "")]]


def test_ansi_codes() -> None:
    assert ansi([("x", "bold white on red"), ("y", ""), ("", "dim")]) == "\x1b[1;37;41mx\x1b[0my"


def test_columns_fit_their_cells_and_numbers_end_together() -> None:
    rows = [[Text(("step", "")), Text(("loss", ""))], [Text(("1", "")), Text(("2.5", ""))]]
    assert shown(list(Grid.fitted(rows, gap=3, right=(0, 1)).lines(80))) == ["step   loss", "   1    2.5"]


def test_columns_give_way_on_a_narrow_page() -> None:
    rows = [[Text(("a" * 20, "")), Text(("b", ""))]]
    assert max(len(line) for line in shown(list(Grid.fitted(rows, gap=1).lines(10)))) <= 10


def test_rich_can_show_a_block() -> None:
    console = Console(file=io.StringIO(), width=20)
    grid = Grid(3, None)
    grid.add_row("a", Text(("b", "bold")))
    console.print(grid)
    assert console.file.getvalue().split() == ["a", "b"]
