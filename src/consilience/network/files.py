"""Networks from files: a matrix as CSV or TOML; recorded turns as CSV."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from io import StringIO
from itertools import groupby
from pathlib import Path

import numpy as np

from consilience.errors import InputError, brief
from consilience.network.network import Network, from_matrix
from consilience.network.schedule import Schedule
from consilience.network.turns import Turn

SUFFIXES = (".csv", ".toml")
TURNS_HEADER = ["round", "time", "agent", "hears", "weight", "age"]
LEARNS = "learns"  # in the place of whom an agent hears


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


def turns_as_csv(schedule: Schedule, rounds: int) -> str:
    """What happens in each round: a row for everybody who learns, and one for everybody who hears somebody."""

    def rows() -> Iterator[list[object]]:
        for number in range(1, rounds + 1):
            turn = schedule.turn(number)
            if not len(turn.learners) + len(turn.receivers):
                yield [number, turn.time, "", "", "", ""]
            yield from ([number, turn.time, agent, LEARNS, "", ""] for agent in turn.learners.tolist())
            heard = (part.tolist() for part in (turn.receivers, turn.senders, turn.weights, turn.ages))
            yield from ([number, turn.time, *row] for row in zip(*heard, strict=True))

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TURNS_HEADER)
    writer.writerows(rows())
    return text.getvalue()


def read_turns(file: str | Path) -> list[Turn]:
    """Turns from a file as `turns_as_csv` writes it; rounds must be there from 1 on, one after another."""
    try:
        with Path(file).open(encoding="utf-8", newline="") as lines:
            header, *rows = csv.reader(lines)
        if header != TURNS_HEADER:
            raise ValueError(f"its first line must be {','.join(TURNS_HEADER)}")
        turns: list[Turn] = []
        for number, group in groupby(rows, key=lambda row: int(row[0])):
            if number != len(turns) + 1:
                raise ValueError(f"round {len(turns) + 1} is missing")
            turns.append(_turn(list(group)))
        return turns
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"turns: cannot read '{file}': {_reason(error)}") from None
    except (ValueError, IndexError) as error:
        raise InputError(f"turns: '{file}' is not a file of turns: {error}") from None


def is_turns_file(file: str | Path) -> bool:
    """Whether a file begins as `turns_as_csv` writes it."""
    try:
        with Path(file).open(encoding="utf-8") as lines:
            return lines.readline().strip() == ",".join(TURNS_HEADER)
    except (OSError, UnicodeDecodeError):
        return False


def _turn(rows: list[list[str]]) -> Turn:
    learners = [int(row[2]) for row in rows if row[3] == LEARNS]
    heard = [row for row in rows if row[3] not in ("", LEARNS)]
    return Turn(
        np.array(learners, np.int32),
        np.array([int(row[2]) for row in heard], np.int32),
        np.array([int(row[3]) for row in heard], np.int32),
        np.array([float(row[4]) for row in heard]),
        np.array([int(row[5]) for row in heard], np.int32),
        float(rows[0][1]),
    )


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
    except (ValueError, RecursionError) as error:  # not TOML, or whole numbers of thousands of digits
        raise InputError(f"network: '{path}' is not TOML: {error}") from None
    rows = content.get("W")
    if not (isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        raise InputError(f"network: '{path}' must have a key W that holds a list of rows")
    numbers = [
        [_number(cell, f"row {i}, column {j}", path) for j, cell in enumerate(row)] for i, row in enumerate(rows)
    ]
    names = content.get("names", [])
    if not isinstance(names, list):
        raise InputError(f"names: must be a list with a name for each agent, got {brief(names)}")
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
        raise InputError(f"W: {place} must be a number, got {brief(cell)} in '{path}'") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _reason(error: Exception) -> str:
    return error.strerror or "unreadable" if isinstance(error, OSError) else "it is not UTF-8 text"
