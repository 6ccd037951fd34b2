"""Schedules made of other schedules: what has reached whom follows from who has heard whom, turn after turn."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from jaxtyping import Int

from consilience.network.network import Network
from consilience.network.schedule import Fixed, Most, Schedule
from consilience.network.turns import IDLE, Turn

KEPT = 64  # turns between two places from which turns can be followed again


class Following:
    """A schedule whose turns depend on all those before of another one, which are followed from the start.

    A subclass has `_begun()`, where everybody stands before turn 1, and `_next(at, turn)`, which moves that on by a
    turn of the other schedule and gives the turn that is made of it, and how many messages it takes. `rounds` are
    followed at once, to know how large turns get. Where the other schedule is the same W in every round, so is, once
    all has reached all, what is made of it; then that is done from the start, because before its first publication an
    agent's last one is its initial one.
    """

    def __init__(self, hears: Network | Schedule, rounds: int) -> None:
        self.heard = hears
        self.schedule: Schedule = Fixed(hears) if isinstance(hears, Network) else hears
        self.agents = self.schedule.agents
        self.repeats: int | None = None
        self._places: dict[int, Any] = {}
        self._sent: dict[int, int] = {}
        self._now, self._at = 0, self._begun()
        self._turn: Turn | None = None
        always = isinstance(self.schedule, Fixed)
        sizes = np.zeros(4, np.int64)
        for number in range(1, (self.agents if always else rounds) + 1):
            sizes = np.maximum(sizes, _sizes(self.turn(number)))
        self.most = Most(*(int(size) for size in sizes))
        if always:
            self._always, self.repeats = self._turn, self.most.age + 1  # as long as memories of what was said

    _always: Turn | None = None

    def _begun(self) -> Any:
        raise NotImplementedError

    def _next(self, at: Any, turn: Turn) -> tuple[Turn, int]:
        raise NotImplementedError

    def turn(self, number: int) -> Turn:
        """What happens in round `number`."""
        if self._always is not None:
            return self._always._replace(time=float(number))
        if number < self._now:
            before = number - 1 - (number - 1) % KEPT
            self._now, self._at = before, deepcopy(self._places[before]) if before else self._begun()
        while self._now < number:
            if self._now and self._now % KEPT == 0 and self._now not in self._places:
                self._places[self._now] = deepcopy(self._at)
            self._now += 1
            self._turn, self._sent[self._now] = self._next(self._at, self.schedule.turn(self._now))
        return self._turn or IDLE

    def messages(self, rounds: int) -> Int[np.ndarray, "rounds"]:
        """How many messages agents send in each of so many rounds, from the first, before which nobody has any."""
        if self._always is None and rounds > len(self._sent):
            self.turn(rounds)
        followed = [self._sent[number] for number in range(1, min(rounds, len(self._sent)) + 1)]
        return np.array(followed + followed[-1:] * (rounds - len(followed)), np.int64)


def heard_of(hears: Network | Schedule) -> Network | Schedule:
    """Who hears whom: what is followed, where a schedule is made of another one; else the network or schedule itself.

    >>> from consilience.network import ring
    >>> from consilience.network.tables import Tables
    >>> heard_of(Tables(ring(5), rounds=3)).agents
    5
    """
    return hears.heard if isinstance(hears, Following) else hears


def _sizes(turn: Turn) -> tuple[int, int, int, int]:
    return len(turn.learners), len(np.unique(turn.receivers)), len(turn.senders), int(turn.ages.max(initial=0))
