"""How a run is watched and stopped from Python, in a terminal and in a notebook alike."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from consilience.report.progress import progress_bar
from consilience.runs.play import OnRound

PAUSE = 0.1  # seconds between two pictures of a bar in a notebook, each of which is a message


@contextmanager
def watched(rounds: int, wanted: bool | None) -> Iterator[OnRound]:
    """A progress bar, in a terminal and in a notebook, unless it is not wanted."""
    console = Console(stderr=True)
    shown = (sys.stderr.isatty() or console.is_jupyter) if wanted is None else wanted
    # In a notebook rich's own bar needs widgets, and is a warning where there are none: there its picture is replaced.
    bar = progress_bar("", console, disable=not shown or console.is_jupyter)
    task = bar.add_task("", total=rounds, words="")
    with bar, _in_a_notebook(bar) if shown and console.is_jupyter else _nowhere() as picture:

        def on_round(done: int, words: str) -> None:
            bar.update(task, completed=done, words=words)
            picture()

        yield on_round


@contextmanager
def _nowhere() -> Iterator[Callable[[], None]]:
    yield lambda: None


@contextmanager
def _in_a_notebook(bar: Any) -> Iterator[Callable[[], None]]:
    """One output of the cell, replaced now and then, and at the end, however that comes."""
    from IPython.display import display

    output, last = display(bar, display_id=True), 0.0

    def picture() -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= PAUSE:
            output.update(bar)
            last = now

    try:
        yield picture
    finally:
        output.update(bar)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Whether somebody wants to stop (Ctrl-C, a notebook's Interrupt), to be asked whenever stopping loses nothing.

    Before it was asked once there is nothing to lose, and who interrupts twice does not want to wait: both are a
    KeyboardInterrupt at once, as without this. So is what others do with signals, and what happens in other threads.
    """
    begun = heard = False

    def asked() -> bool:
        nonlocal begun
        begun = True
        return heard

    def hear(*_: object) -> None:
        nonlocal heard
        if heard or not begun:
            raise KeyboardInterrupt
        heard = True

    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
