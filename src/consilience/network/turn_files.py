"""Recorded turns as CSV: who learned, and who heard whom, in every round."""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import StringIO
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from consilience.errors import InputError, brief
from consilience.files.reading import finite, numbered_rows, reading, whole
from consilience.network.schedule import Schedule
from consilience.network.turns import Turn

TURNS_HEADER = ["round", "time", "agent", "hears", "weight", "age"]
LEARNS = "learns"  # in the place of whom an agent hears
MOST = 2**31  # agents and rounds are numbers of four bytes


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
    with reading("turns", file), Path(file).open(encoding="utf-8-sig", newline="") as lines:
        rows = numbered_rows(lines)
        if next(rows, (0, []))[1] != TURNS_HEADER:
            raise InputError(f"its first line must be {','.join(TURNS_HEADER)}")
        turns: list[Turn] = []
        for number, group in groupby(map(_entry, rows), key=lambda entry: entry.round):
            if number != len(turns) + 1:
                raise InputError(f"round {len(turns) + 1} is missing, round {number} is in its place")
            turn = _turn(list(group))
            if turns and turn.time < turns[-1].time:
                raise InputError(f"round {number} ends at {turn.time:g}, before round {number - 1} does")
            turns.append(turn)
    return turns


def is_turns_file(file: str | Path) -> bool:
    """Whether a file begins as `turns_as_csv` writes it."""
    try:
        with Path(file).open("rb") as lines:
            return lines.readline(1000).removeprefix(BOM_UTF8).strip() == ",".join(TURNS_HEADER).encode()
    except (OSError, ValueError):  # not there, or not even a file's name
        return False


class _Entry(NamedTuple):
    """A row of a file of turns: who learns (`hears` is None), or who hears whom; nobody in a round without either."""

    line: int
    round: int
    time: float
    agent: int | None
    hears: int | None
    weight: float
    age: int


def _entry(numbered: tuple[int, list[str]]) -> _Entry:
    line, row = numbered
    if len(row) != len(TURNS_HEADER):
        raise InputError(f"line {line} has {len(row)} values, the header has {len(TURNS_HEADER)}")

    at = {name: f"line {line}, column '{name}'" for name in TURNS_HEADER}
    which, time = _number(row[0], at["round"], 1, MOST), finite(row[1], at["time"])
    if not any(row[2:]):
        return _Entry(line, which, time, None, None, 0.0, 0)
    agent = _number(row[2], at["agent"], 0, MOST)
    if row[3] == LEARNS:
        if any(row[4:]):
            raise InputError(f"line {line}: who learns has no weight and no age, got {brief(','.join(row[4:]))}")
        return _Entry(line, which, time, agent, None, 0.0, 0)
    # Nobody publishes more than once a round, so nothing that is heard is older than the rounds so far.
    hears, weight = _number(row[3], at["hears"], 0, MOST), finite(row[4], at["weight"])
    return _Entry(line, which, time, agent, hears, weight, _number(row[5], at["age"], 0, which))


def _number(text: str, place: str, least: int, below: int) -> int:
    if not least <= (value := whole(text, place)) < below:
        raise InputError(f"{place} must be from {least} to {below - 1}, got {value}")
    return value


def _turn(entries: list[_Entry]) -> Turn:
    first = entries[0]
    learners = [entry for entry in entries if entry.agent is not None and entry.hears is None]
    heard = [entry for entry in entries if entry.hears is not None]
    for entry in entries[1:]:
        if entry.time != first.time:
            raise InputError(f"line {entry.line}: round {entry.round} ends at {first.time:g}, got {entry.time:g}")
        if first.agent is None or entry.agent is None:
            raise InputError(f"line {entry.line}: a round in which nobody does anything has one line")
    for before, entry in pairwise(learners):
        if entry.agent <= before.agent:  # type: ignore[operator]  # learners are somebody
            raise InputError(f"line {entry.line}: learners must be in order, got {entry.agent} after {before.agent}")
    seen: set[tuple[int | None, int | None]] = set()
    for entry in heard:
        if (pair := (entry.agent, entry.hears)) in seen:
            raise InputError(f"line {entry.line}: agent {entry.agent} hears agent {entry.hears} twice in a round")
        seen.add(pair)
    return Turn(
        np.array([entry.agent for entry in learners], np.int32),
        np.array([entry.agent for entry in heard], np.int32),
        np.array([entry.hears for entry in heard], np.int32),
        np.array([entry.weight for entry in heard], float),
        np.array([entry.age for entry in heard], np.int32),
        first.time,
    )
