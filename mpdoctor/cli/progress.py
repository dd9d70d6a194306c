"""Progress of long work: a bar on stderr when that is a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mpdoctor.cli import console
from mpdoctor.core.progress import SILENT, Progress


@contextmanager
def shown(*, quiet: bool, color: console.Color = console.Color.AUTO) -> Iterator[Progress]:
    """A progress for the block: the bar disappears when the block ends."""
    if quiet or not sys.stderr.isatty():
        yield SILENT
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Count(ProgressColumn):
        """`3/12`, and nothing where the total is not known."""

        def render(self, task: Task) -> Text:
            return Text("" if task.total is None else f"{task.completed:g}/{task.total:g}", style="progress.download")

    class Shown:
        """The running task as one line: spinner, task, bar, count, time, remark."""

        def __init__(self, bars: Bars) -> None:
            self._bars = bars
            self._task = bars.add_task("starting", total=None, note="")

        def start(self, task: str, total: int | None = None) -> None:
            self._bars.remove_task(self._task)
            self._task = self._bars.add_task(task, total=total, note="")

        def advance(self, amount: int = 1) -> None:
            self._bars.advance(self._task, amount)

        def note(self, text: str) -> None:
            self._bars.update(self._task, note=text)

    plain = not console.colored(sys.stderr, color)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        Count(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
    )
    with Bars(*columns, console=Console(file=sys.stderr, no_color=plain), transient=True) as bars:
        yield Shown(bars)
