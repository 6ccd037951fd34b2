"""One look for every figure."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's palette: told apart by everyone, in print too.
COLOURS = {"central": "#000000", "alone": "#D55E00", "cooperating": "#0072B2"}
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LOOK: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 10,
    "axes.titlesize": 11,
    "legend.frameon": False,
}


def canvas(rows: int, columns: int, width: float, height: float, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure that never touches a screen or global state, and its axes in reading order."""
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).flat)


def plain(name: str, most: int = 24) -> str:
    """A name of the user's own as text in a figure: no formula, never left out of a legend, and not too long.

    >>> plain("$5"), plain("_x"), plain("a very, very long name of a label")
    ('\\\\$5', ' _x', 'a very, very long name …')
    """
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return f"{' ' if short.startswith('_') else ''}{short}".replace("$", r"\$")


def small_multiples(count: int) -> tuple[Any, list[Any]]:
    """A figure with this many panels, three in a row."""
    columns = min(count, 3)
    rows = -(-count // columns)
    figure, panels = canvas(rows, columns, 3.5 * columns, 3.0 * rows + 1.2)
    for spare in panels[count:]:
        spare.remove()
    return figure, panels[:count]


def finish(figure: Figure, caption: str, file: Path) -> Path:
    """Write the figure with its caption (what to see in it) below."""
    with mpl.rc_context(LOOK), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # names in any script; boxes are drawn
        figure.supxlabel(caption, fontsize=9, color="#444444")
        figure.savefig(file, dpi=150)
    return file


ACCURACIES = (1, 0.998, 0.995, 0.99, 0.98, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0)
EVEN = tuple(round(1 - 0.02 * k, 2) for k in range(51))  # where an axis is too short for three of those
CLOSEST = 0.05  # of an axis, between two of its numbers


def accuracy_axis(axes: Axes, lowest: float, highest: float, to_one: bool = False) -> None:
    """An axis of accuracies on which halving the errors is always the same distance: the last points can be seen."""
    shift = (1 - highest) / 2 + 1e-4  # 100 % is on it

    def place(accuracy: Any) -> Any:
        return -np.log(np.maximum(1 + shift - accuracy, 1e-9))

    bottom, top = max(lowest - 0.02, 0), 1 if to_one else min(highest + (1 - highest) / 3, 1)
    axes.set_yscale("function", functions=(place, lambda y: 1 + shift - np.exp(-y)))
    axes.set_ylim(bottom, top)

    def apart(numbers: tuple[float, ...]) -> list[float]:
        ticks: list[float] = []
        for accuracy in numbers:
            if bottom <= accuracy <= top and (
                not ticks or place(ticks[-1]) - place(accuracy) > CLOSEST * (place(top) - place(bottom))
            ):
                ticks.append(accuracy)
        return ticks

    ticks = apart(ACCURACIES)
    ticks = ticks if len(ticks) > 2 else apart(EVEN)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def plain_ticks(axis: Axis, narrow: bool = False) -> None:
    """Ticks at 1, 2 and 5 (where there is little room 1 and 3) times the powers of ten of a logarithmic axis."""
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 3.0) if narrow else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
