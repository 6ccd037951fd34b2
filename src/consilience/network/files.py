"""Networks from files: a matrix as CSV or TOML."""

from __future__ import annotations

import tomllib
from io import StringIO
from pathlib import Path

from consilience.errors import InputError, brief
from consilience.files.reading import finite, numbered_rows, reading
from consilience.network.network import Network, from_matrix

SUFFIXES = (".csv", ".toml")


def read_network(file: str | Path) -> Network:
    """Read W from a `.csv` of numbers (a row a line, an optional header of names) or a `.toml` with `W = [[…], …]`."""
    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise InputError(f"network: a matrix is read from {' or '.join(SUFFIXES)}, got '{path}'")
    with reading("network", path):
        text = path.read_text(encoding="utf-8-sig")
        rows, names = _from_csv(text) if path.suffix == ".csv" else _from_toml(text)
        _check(rows, names)
        network = from_matrix(rows, path.name, names)
    return network


def _from_csv(text: str) -> tuple[list[list[float]], list[str]]:
    lines = [row for _, row in numbered_rows(StringIO(text)) if any(cell.strip() for cell in row)]
    names: list[str] = []
    if lines and not any(_is_number(cell) for cell in lines[0]):
        names = [cell.strip() for cell in lines.pop(0)]
    return [[finite(cell, _entry(i, j)) for j, cell in enumerate(row)] for i, row in enumerate(lines)], names


def _from_toml(text: str) -> tuple[list[list[float]], list[str]]:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits are a ValueError of their own
        raise InputError(f"it is not TOML: {error}") from None
    rows, names = content.get("W"), content.get("names", [])
    if not (isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        raise InputError("must have a key W that holds a list of rows")
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if isinstance(cell, bool) or not isinstance(cell, int | float):
                raise InputError(f"{_entry(i, j)} must be a number, got {brief(cell)}")
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError(f"names must be a list of text with a name for each agent, got {brief(names)}")
    return [[finite(cell, _entry(i, j)) for j, cell in enumerate(row)] for i, row in enumerate(rows)], names


def _check(rows: list[list[float]], names: list[str]) -> None:
    """Refuse what is not square, and names that do not tell the agents apart."""
    if not rows:
        raise InputError("W must have at least one row, got none")
    for i, row in enumerate(rows):
        if len(row) != len(rows):
            raise InputError(f"W must be square, it has {len(rows)} rows but row {i} has {len(row)} entries")
    if names and len(names) != len(rows):
        raise InputError(f"names must be one for each of {len(rows)} agents, got {len(names)}")
    for place, name in enumerate(names):
        if not name or not name.isprintable():
            raise InputError(f"the name of agent {place} must be a line of text, got {brief(name)}")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"names must be different, two agents are called {brief(twice)}")


def _entry(row: int, column: int) -> str:
    return f"W: row {row}, column {column}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
