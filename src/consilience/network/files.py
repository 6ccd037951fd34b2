"""Networks from files: a matrix as CSV or TOML."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

from consilience.errors import InputError
from consilience.network.network import Network, from_matrix

SUFFIXES = (".csv", ".toml")


def read_network(file: str | Path) -> Network:
    """Read W from a `.csv` of numbers (a row a line, an optional header of names) or a `.toml` with `W = [[…], …]`."""
    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise InputError(f"network: a matrix is read from {' or '.join(SUFFIXES)}, got '{path}'")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"network: cannot read '{path}': {_reason(error)}") from None
    return _from_csv(text, path) if path.suffix == ".csv" else _from_toml(text, path)


def _from_csv(text: str, path: Path) -> Network:
    try:
        lines = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"network: '{path}' is not CSV: {error}") from None
    names: list[str] = []
    if lines and not any(_is_number(cell) for cell in lines[0]):
        names = [cell.strip() for cell in lines.pop(0)]
    rows = [[_number(cell, f"row {i}, column {j}", path) for j, cell in enumerate(row)] for i, row in enumerate(lines)]
    return _named(rows, path, names)


def _from_toml(text: str, path: Path) -> Network:
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"network: '{path}' is not TOML: {error}") from None
    rows = content.get("W")
    if not (isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        raise InputError(f"network: '{path}' must have a key W that holds a list of rows")
    numbers = [
        [_number(cell, f"row {i}, column {j}", path) for j, cell in enumerate(row)] for i, row in enumerate(rows)
    ]
    names = content.get("names", [])
    if not isinstance(names, list):
        raise InputError(f"names: must be a list with a name for each agent, got {names!r}")
    return _named(numbers, path, [str(name) for name in names])


def _named(rows: list[list[float]], path: Path, names: list[str]) -> Network:
    if names and len(names) != len(rows):
        raise InputError(f"names: must be one for each of {len(rows)} agents, '{path}' has {len(names)}")
    return from_matrix(_rectangular(rows, path), path.name, names)


def _rectangular(rows: list[list[float]], path: Path) -> list[list[float]]:
    for i, row in enumerate(rows):
        if len(row) != len(rows):
            raise InputError(f"W: must be square, '{path}' has {len(rows)} rows but row {i} has {len(row)} entries")
    return rows


def _number(cell: object, place: str, path: Path) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]  # what is not a number raises, which is the point
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"W: {place} must be a number, got {cell!r} in '{path}'") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _reason(error: Exception) -> str:
    return error.strerror or "unreadable" if isinstance(error, OSError) else "it is not UTF-8 text"
