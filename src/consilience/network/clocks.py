"""Agents that do not wait for each other: clocks, delays and staleness, as a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.errors import InputError
from consilience.network.churn import Presence
from consilience.network.network import Network
from consilience.network.schedule import Most
from consilience.network.turns import Turn, rows_of, with_arrived

SLACK = 1e-9  # of a tick, for sums of decimal fractions
MOST_TURNS = 10**9  # that a belief may travel; what was said meanwhile is kept


class Asynchronous:
    """Agents with their own clocks: each learns for its own time, publishes, pools the newest it holds, and goes on.

    A belief takes `delay` (of sender to receiver; a number for all, or a matrix) to arrive. What was published more
    than `staleness` time units before is not pooled any more; its weight stays with the agent. Clocks are read every
    `tick`: who has finished since the last reading acts in one turn, and turns in which nobody acts cost nothing.
    Agents may come and go (`presence`): who is away when its clock runs out does nothing, and what it said before
    stays with those who hold it.

    >>> from consilience.network import ring
    >>> slow_and_fast = Asynchronous(ring(4), durations=[1, 1, 1, 3])
    >>> [slow_and_fast.turn(n).learners.tolist() for n in (1, 2, 3)]
    [[0, 1, 2], [0, 1, 2], [0, 1, 2, 3]]
    """

    repeats = None

    def __init__(
        self,
        network: Network,
        durations: Any,
        delay: Any = 0.0,
        staleness: float | int = np.inf,
        tick: float | int = 1.0,
        presence: Presence | None = None,
    ) -> None:
        self.agents, self.tick, self.staleness, self.presence = network.agents, tick, staleness, presence
        self._durations = np.asarray(durations, float)
        if self._durations.shape != (network.agents,) or not (self._durations > 0).all():
            raise InputError(f"durations: must be {network.agents} positive numbers, one for each agent")
        if not 0 < tick <= self._durations.min():
            raise InputError(f"tick: must be above 0 and at most the shortest duration, got {tick:g}")
        self._receivers, self._senders, self._weights, _ = rows_of(network.W)
        delays = np.broadcast_to(np.asarray(delay, float), (network.agents, network.agents))
        own = self._receivers == self._senders
        delays = np.where(own, 0.0, delays[self._senders, self._receivers])
        if not (delays >= 0).all():
            raise InputError("delay: must be at least 0")
        with np.errstate(over="ignore"):
            if not (turns := float((delays / tick).max(initial=0))) < MOST_TURNS:
                raise InputError(f"delay: of {turns:.3g} ticks is too long, at most {MOST_TURNS:,} are counted")
        self._late = np.ceil(delays / tick - SLACK).astype(np.int64)  # turns after which a belief has arrived
        # What is published while a belief travels makes it older; an agent publishes at most once a duration.
        meanwhile = np.floor(self._late * tick / self._durations[self._senders] + SLACK).astype(np.int64) + 1
        self.most = Most(network.agents, network.agents, network.edges, int((meanwhile * (self._late > 0)).max()))
        # By the end of each turn, from turn 0: how often everybody has published, and in which turn the last time.
        self._count, self._last = [np.zeros(self.agents, np.int64)], [np.zeros(self.agents, np.int64)]

    def _acting(self, number: int) -> Any:
        """Who finishes a round of its own in a turn, and is there."""
        now, before = (np.floor(n * self.tick / self._durations + SLACK) for n in (number, number - 1))
        return (now > before) & (True if self.presence is None else self.presence.at(number))

    def _follow(self, number: int) -> None:
        while len(self._count) <= number:
            turn = len(self._count)
            acting = self._acting(turn)
            self._count.append(self._count[-1] + acting)
            self._last.append(np.where(acting, turn, self._last[-1]))

    def turn(self, number: int) -> Turn:
        """Who has finished, and what it holds by now."""
        self._follow(number)
        acting = self._acting(number)
        picked = np.flatnonzero(acting[self._receivers])
        receivers, senders = self._receivers[picked], self._senders[picked]
        sent = np.maximum(number - self._late[picked], 0)  # what was published by then has arrived
        arrived, when = (_entries(kept, sent, senders) for kept in (self._count, self._last))
        fresh = (arrived > 0) & ((number - when) * self.tick <= self.staleness + SLACK)
        turn = Turn(
            np.flatnonzero(acting).astype(np.int32),
            receivers,
            senders,
            self._weights[picked],
            (self._count[number][senders] - arrived).astype(np.int32),
            float(number * self.tick),
        )
        return with_arrived(turn, fresh | (receivers == senders))


def _entries(kept: list[Any], turns: Any, agents: Any) -> Any:
    """kept[turn][agent] for each pair, without looking at the turns between."""
    needed, place = np.unique(turns, return_inverse=True)
    table = np.array([kept[turn] for turn in needed.tolist()]) if len(needed) else np.zeros((0, len(kept[0])), np.int64)
    return table[place, agents]
