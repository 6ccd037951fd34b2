"""Results as small tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from consilience.errors import printable

# What is printed may be a user's own words: brackets in it are no markup, and :smile: is no picture.
console = partial(Console, markup=False, emoji=False, highlight=False)
NUMBER = re.compile(r"-?[\d,.]*\d(e[-+]?\d+)?%?|-?∞|–")
WIDEST = 10_000  # characters of a line


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """A table: text on the left of its columns, numbers, with four significant digits, on the right."""
    made = Table(
        title=title and Text(printable(title)), title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for number, name in enumerate(columns):
        cells = [shown(row[number]) for row in rows]
        justify: Any = "right" if number and all(map(_is_number, cells)) else "left"
        # Names of rows stay in one line; that a table then needs their whole width is not measured, but has to be said.
        widest = None if number else max(map(cell_len, [printable(name), *cells]))
        made.add_column(Text(printable(name)), justify=justify, no_wrap=number == 0, min_width=widest)
    for row in rows:
        made.add_row(*(Text(shown(value)) for value in row))
    return made


def show(made: Table, whole: bool = False) -> None:
    """Print a table at least as wide as its longest words, or as its longest cells: numbers are never cut off."""
    screen = console()
    needs = Measurement.get(screen, screen.options.update(max_width=WIDEST), made)
    # A title is a line of its own, which need not fit over the columns.
    title, made.title = Text(str(made.title or ""), style="table.title"), None
    wide = max(needs.maximum if whole else needs.minimum, screen.width, title.cell_len)
    console(width=wide).print(Group(title, made) if title else made)


def as_text(columns: Mapping[str, Any], most: int = 10) -> str:
    """Columns by name as a table in plain text, and how many rows were left out.

    >>> print(as_text({"label": ["yes", "no", "no"], "p": np.array([0.25, 1 / 3, 1.0])}, most=2))
    label       p
    yes      0.25
    no     0.3333
    … and 1 more row
    """
    rows = list(zip(*(np.asarray(values)[:most].tolist() for values in columns.values()), strict=True))
    text = StringIO()
    console(file=text, width=WIDEST, color_system=None, force_jupyter=False).print(table(list(columns), rows))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    if (left := len(next(iter(columns.values()))) - len(rows)) > 0:
        lines.append(f"… and {left:,} more row{'s' * (left > 1)}")
    return "\n".join(lines)


def _is_number(cell: str) -> bool:
    """Whether a cell belongs on the right: a number, or that there is none."""
    return NUMBER.fullmatch(cell) is not None


def shown(value: Any) -> str:
    """A value as a person reads it.

    >>> shown(0.123456), shown(20737), shown(None), shown(float("nan")), shown(True), shown(float("-inf"))
    ('0.1235', '20,737', '–', '–', 'yes', '-∞')
    """
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}".replace("inf", "∞")
    return printable(str(value))
