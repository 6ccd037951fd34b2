"""Whose evidence a peer has: who was heard in which round, and of whom nothing ever was."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from consilience.errors import InputError
from consilience.runs import folder as files
from consilience.runs.appended import rows_of

HEARD, HEADER = "heard.csv", ("round", "heard", "weight", "age")
AMONG, STUDY = "among", "study"  # of run.json: whom a peer is to hear, itself included; of which study


class Heard(NamedTuple):
    """Somebody who was heard in a round: with what weight, and how many rounds old."""

    round: int
    name: str
    weight: float
    age: int


class Participants(NamedTuple):
    """Of those whom a peer is to hear, itself included: who was heard at all, and who never was."""

    present: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def note(self) -> str | None:
        """What whoever uses the results must know.

        >>> Participants(("north", "west"), ("south",)).note
        'south was never heard: nothing of its data is in what was learnt'
        >>> Participants(("north",), ("south", "west")).note
        'south and west were never heard: nothing of their data is in what was learnt'
        >>> Participants(("north", "south"), ()).note is None
        True
        """
        if not self.missing:
            return None
        were, their = ("was", "its") if len(self.missing) == 1 else ("were", "their")
        return f"{listed(self.missing)} {were} never heard: nothing of {their} data is in what was learnt"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["north"]), listed(["north", "south", "west"])
    ('north', 'north, south and west')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def participants(folder: Path) -> Participants | None:
    """Whose data is in what a peer has learnt, as far as it hears of them; `None` of a run that is not a peer's."""
    known = files.facts(folder)
    return taking_part(known, heard_in(folder)) if AMONG in known else None


def taking_part(facts: Mapping[str, Any], heard: Iterable[Heard]) -> Participants | None:
    """The same from what is known of a run.

    By sites these are all members of the study, else those whom the peer itself hears: what is pooled from neighbours
    has passed through many hands.
    """
    among = facts.get(AMONG)
    if not isinstance(among, list):
        return None
    ever = {one.name for one in heard}
    return Participants(
        tuple(name for name in among if name in ever), tuple(name for name in among if name not in ever)
    )


def heard_in(folder: Path) -> list[Heard]:
    """Who contributed to which round."""
    file, known = folder / HEARD, files.extent(folder, HEARD)
    try:
        known.check(file)
        header, *rows = list(rows_of(file, known.bytes)) if known.bytes else [list(HEADER)]
        if tuple(header) != HEADER:
            raise ValueError(f"its first line must be {','.join(HEADER)}")
        return [Heard(int(number), name, float(weight), int(age)) for number, name, weight, age in rows]
    except OSError as error:
        raise InputError(f"run: cannot read '{file}': {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"run: '{file}' is damaged: {error}") from None
