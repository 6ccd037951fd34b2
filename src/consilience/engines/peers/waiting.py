"""For whom a peer waits before it pools, and how long: nobody's silence holds the others up for ever."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Patience(NamedTuple):
    """How long a peer waits, in seconds.

    round: for neighbours that took part lately. gather: for all of them, before the first round; and for anybody, where
    nobody is heard at all. silent_after: rounds that a neighbour must miss before it is no longer waited for; it is
    again as soon as it is heard. stay: for neighbours that are behind, when all rounds are played.
    """

    round: float = 30.0
    gather: float = 300.0
    silent_after: int = 2
    stay: float = 300.0


class Waiting:
    """Who is waited for.

    >>> waiting = Waiting(Patience(round=10.0, gather=60.0, silent_after=2))
    >>> waiting.left(linked={1, 2}, missing={2}, since=0.0)  # nobody has played yet: all are gathered
    60.0
    >>> for heard in ({1, 2}, {1}, {1}):
    ...     waiting.after_round({1, 2}, heard)
    >>> waiting.left({1, 2}, {2}, 3.0), waiting.left({1, 2}, {1}, 3.0)  # 2 was silent twice
    (0.0, 7.0)
    >>> waiting.heard(2)
    >>> waiting.left({1, 2}, {2}, 3.0)
    7.0
    >>> waiting.parted(2)  # it said goodbye
    >>> waiting.left({1, 2}, {2}, 3.0)
    0.0
    """

    def __init__(self, patience: Patience, missed: Mapping[int, int] | None = None) -> None:
        self.patience = patience
        self.missed: dict[int, int] = dict(missed or {})  # rounds in a row, of everybody who was ever heard
        self._gone: set[int] = set()

    def heard(self, neighbour: int) -> None:
        """Somebody is there, at whatever round."""
        self.missed[neighbour] = 0
        self._gone.discard(neighbour)

    def parted(self, neighbour: int) -> None:
        """Somebody has said goodbye: it is not waited for until it is heard again."""
        self._gone.add(neighbour)

    def has_parted(self, neighbour: int) -> bool:
        """Whether somebody has said goodbye, and nothing since."""
        return neighbour in self._gone

    def after_round(self, linked: Collection[int], heard: Collection[int]) -> None:
        """Count who was not heard in a round."""
        for neighbour in linked:
            if neighbour in heard:
                self.missed[neighbour] = 0
            else:
                self.missed[neighbour] = self.missed.get(neighbour, 0) + 1

    def silent(self, neighbour: int) -> bool:
        """Whether a neighbour has missed so many rounds that it is not waited for."""
        return self.missed.get(neighbour, 0) >= self.patience.silent_after

    def left(self, linked: Collection[int], missing: Collection[int], since: float) -> float:
        """The most seconds to wait on, having waited some, for those who have not been heard in this round."""
        gone = set(self._gone)  # other threads hear goodbyes
        linked, missing = set(linked) - gone, set(missing) - gone
        if not missing:
            return 0.0
        met = set(self.missed)
        isolated = all(self.silent(neighbour) for neighbour in linked)
        if isolated or not met:
            return max(self.patience.gather - since, 0.0)
        awaited = [neighbour for neighbour in missing if not self.silent(neighbour)]
        return max(self.patience.round - since, 0.0) if awaited else 0.0
