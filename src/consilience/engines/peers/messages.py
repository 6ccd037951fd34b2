"""What peers say to each other, as values: whatever the consensus, a message is a list of entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

Arrays: TypeAlias = Mapping[str, np.ndarray]
Version: TypeAlias = tuple[int, int]  # the round, and how often its owner has been started: a larger one is newer


class Entry(NamedTuple):
    """What one member has to say, in one version: its belief, its site or its counters, as arrays by name.

    Where others pass it on, its owner's signature says that it is the owner's.
    """

    owner: int
    version: Version
    arrays: Arrays
    signature: str = ""


class Said(NamedTuple):
    """A message: who says what in which round, and under which roster."""

    sender: int
    round: int
    entries: tuple[Entry, ...]
    epoch: int = 0


STARTS = 1 << 20  # more often nobody is started


def as_count(version: Version) -> int:
    """A version as one whole number, in the same order.

    >>> as_version(as_count((7, 2))), as_count((7, 2)) < as_count((8, 1))
    ((7, 2), True)
    """
    number, incarnation = version
    return number * STARTS + min(incarnation, STARTS - 1)


def as_version(count: int) -> Version:
    """The opposite."""
    return divmod(count, STARTS)
