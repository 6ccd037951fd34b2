"""Results as small tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from consilience.errors import printable

NUMBER = re.compile(r"-?[\d,.]*\d(e[-+]?\d+)?%?|-?∞|–")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """A table: text on the left of its columns, numbers, with four significant digits, on the right."""
    made = Table(
        title=title and Text(printable(title)), title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for number, name in enumerate(columns):
        cells = [shown(row[number]) for row in rows]
        justify: Any = "right" if number and all(map(_is_number, cells)) else "left"
        made.add_column(Text(printable(name)), justify=justify, no_wrap=number == 0)
    for row in rows:
        made.add_row(*(Text(shown(value)) for value in row))
    return made


def _is_number(cell: str) -> bool:
    """Whether a cell belongs on the right: a number, or that there is none."""
    return NUMBER.fullmatch(cell) is not None


def shown(value: Any) -> str:
    """A value as a person reads it.

    >>> shown(0.123456), shown(20737), shown(None), shown(True), shown(float("-inf"))
    ('0.1235', '20,737', '–', 'yes', '-∞')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}".replace("inf", "∞")
    return printable(str(value))
