"""Draw the README's picture: the report of a real replay of a bundled checkpoint, as SVG.

Run from the repository's root: python docs/picture.py
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mpdoctor import run_replay
from mpdoctor.core.report import Report
from mpdoctor.report import renderer

ROOT = Path(__file__).parents[1]
CHECKPOINT = Path("fixtures/checkpoints/fp16-overflow")
COMMAND = f"mpdoctor replay {CHECKPOINT} --data {CHECKPOINT}/data.jsonl"
WIDTH = 104
LAST_PART = "Steps"
"""The picture ends before this part of the report: it shows the answer, not the whole report."""


def picture(report: Report) -> str:
    """The first parts of the report as SVG."""
    text = renderer.load("text").render(report, renderer.RenderOptions(width=WIDTH, color=True))
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if Text.from_ansi(line).plain.startswith(LAST_PART)), len(lines))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text(f"$ {COMMAND}", style="bold"))
    console.print(Text.from_ansi("\n".join(lines[:end])))
    return console.export_svg(title="mpdoctor replay")


if __name__ == "__main__":
    report = run_replay(CHECKPOINT, data=CHECKPOINT / "data.jsonl")
    (ROOT / "docs" / "replay.svg").write_text(picture(report), encoding="utf-8")
