"""How content becomes text to show: control characters spelled out, ASCII when that is asked for, never markup."""

from __future__ import annotations

from mpdoctor.core.cause import Standing
from mpdoctor.core.finding import Severity
from mpdoctor.core.record import dataclass
from mpdoctor.report.characters import one_line, to_ascii, visible
from mpdoctor.report.sections.layout import Block, Grid, Indented, Text

STANDINGS = {
    Standing.CONFIRMED: ("✗ confirmed", "bold red"),
    Standing.LIKELY: ("● likely", "red"),
    Standing.POSSIBLE: ("○ possible", "yellow"),
    Standing.RULED_OUT: ("✓ ruled out", "green"),
    Standing.UNTESTED: ("– untested", "dim"),
}
"""Words, mark and style of each standing. The sixteen ANSI colours follow the terminal's theme, so they are legible on dark and light."""

SEVERITIES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "blue"}


@dataclass(frozen=True, slots=True)
class Ink:
    """Makes every piece of text of a report."""

    ascii: bool = False
    quiet: bool = False
    width: int = 80

    def plain(self, text: str) -> str:
        """`text`, safe to show, in ASCII where that is asked for."""
        text = visible(text)
        return to_ascii(text) if self.ascii else text

    def __call__(self, text: str, style: str = "") -> Text:
        """`text` in one style."""
        return Text((self.plain(text), style))

    def name(self, text: str) -> str:
        """A name from somebody's file, for use inside a line: line breaks spelled out too."""
        return one_line(text)

    def join(self, *pieces: str | tuple[str, str]) -> Text:
        """Several pieces in one line, each plain or with a style."""
        return Text(*((self.plain(piece[0]), piece[1]) if isinstance(piece, tuple) else (self.plain(piece), "") for piece in pieces))

    def title(self, text: str, note: str = "") -> Text:
        """A section's title, with an optional dim remark."""
        return self.join((text, "bold"), (f"  {note}" if note else "", "dim"))

    def patch(self, text: str) -> list[Text]:
        """A diff or snippet: every line behind a bar, additions green, removals red."""
        lines = []
        for line in text.rstrip("\n").splitlines():
            style = (
                "green"
                if line.startswith("+") and not line.startswith("+++")
                else "red"
                if line.startswith("-") and not line.startswith("---")
                else ""
            )
            lines.append(self.join(("│ ", "dim"), (line, style)))
        return lines

    @staticmethod
    def indented(what: Block, by: int = 2) -> Indented:
        """`what`, `by` columns to the right."""
        return Indented(what, by)

    @staticmethod
    def grid(*widths: int | None, gap: int = 2) -> Grid:
        """A table without lines: a fixed width per column, None for the one that takes the rest and wraps."""
        return Grid(*widths, gap=gap)
