"""Columns side by side: what the reports need of `rich.table`, at a fraction of what loading and measuring that costs at every start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


class Grid:
    """Rows of cells in columns of fixed width, one of which (width None) takes the rest. What is too long for a cell goes on below."""

    def __init__(self, *widths: int | None, gap: int = 2) -> None:
        """An empty grid with `gap` columns of space between its cells."""
        self.widths = widths
        self.gap = gap
        self.rows: list[tuple[RenderableType, ...]] = []

    def add_row(self, *cells: RenderableType) -> None:
        """One more row. Missing cells at its end are empty."""
        self.rows.append((*cells, *[""] * (len(self.widths) - len(cells))))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rich's protocol: the segments of every line."""
        fixed = sum(width or 0 for width in self.widths) + self.gap * (len(self.widths) - 1)
        rest = max(1, options.max_width - fixed)
        gap, end = Segment(" " * self.gap), Segment.line()
        for row in self.rows:
            blocks = []
            for cell, width in zip(row, self.widths, strict=True):
                width = width or rest
                content = Text(cell) if isinstance(cell, str) else cell
                blocks.append((width, console.render_lines(content, options.update(width=width, overflow="fold", height=None))))
            height = max(len(lines) for _, lines in blocks)
            shaped = [lines + [[Segment(" " * width)]] * (height - len(lines)) for width, lines in blocks]
            for line in zip(*shaped, strict=True):
                for index, segments in enumerate(line):
                    if index:
                        yield gap
                    yield from segments
                yield end
