"""One look for what is shown while a run is played."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress_bar(title: str, console: Console, disable: bool) -> Progress:
    """A bar of rounds, and a few words on how it goes (the task's field `words`)."""
    return Progress(
        *([TextColumn(title, markup=False)] if title else []),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds  {task.fields[words]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=disable,
    )
