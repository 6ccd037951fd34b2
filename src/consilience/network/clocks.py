"""Agents that do not wait for each other: clocks, delays and staleness, as a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.errors import InputError
from consilience.network.network import Network
from consilience.network.schedule import Most
from consilience.network.turns import Turn, with_arrived


class Asynchronous:
    """Agents with their own clocks: each learns for its own time, publishes, pools the newest it holds, and goes on.

    A belief takes `delay` (of sender to receiver; a number for all, or a matrix) to arrive. What was published more
    than `staleness` time units before is not pooled any more; its weight stays with the agent. Clocks are read every
    `tick`: who has finished since the last reading acts in one turn, and turns in which nobody acts cost nothing.

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
    ) -> None:
        self.agents, self.tick, self.staleness = network.agents, tick, staleness
        self._W, self._durations = network.W, np.asarray(durations, float)
        if self._durations.shape != (network.agents,) or not (self._durations > 0).all():
            raise InputError(f"durations: must be {network.agents} positive numbers, one for each agent")
        if not 0 < tick <= self._durations.min():
            raise InputError(f"tick: must be above 0 and at most the shortest duration, got {tick:g}")
        rows = np.repeat(np.arange(network.agents), np.diff(network.W.indptr))
        delays = np.broadcast_to(np.asarray(delay, float), (network.agents, network.agents))
        self._delays = np.where(rows == network.W.indices, 0.0, delays[network.W.indices, rows])
        if not (self._delays >= 0).all():
            raise InputError("delay: must be at least 0")
        # The oldest belief that can be the newest held: published before a delay and still not replaced.
        age = int(np.ceil(self._delays / self._durations[network.W.indices]).max(initial=0)) + 1
        age = age if self._delays.any() else 0
        self.most = Most(network.agents, network.agents, network.edges, age)

    def completions(self, number: int) -> Any:
        """How many rounds of its own every agent has finished by the end of a turn."""
        return np.floor(number * self.tick / self._durations + 1e-9).astype(np.int64)

    def published(self, agents: Any, counts: Any) -> Any:
        """When agents published for the counts-th time: at the first reading of the clock after they had finished."""
        return np.ceil(counts * self._durations[agents] / self.tick - 1e-9) * self.tick

    def turn(self, number: int) -> Turn:
        """Who has finished, and what it holds by now."""
        now, before = self.completions(number), self.completions(number - 1)
        acting = now > before
        time = float(number * self.tick)
        picked = np.flatnonzero(np.repeat(acting, np.diff(self._W.indptr)))
        receivers = np.repeat(np.arange(self.agents), np.diff(self._W.indptr))[picked]
        senders, weights, delays = self._W.indices[picked], self._W.data[picked], self._delays[picked]
        arrived = self._newest(senders, delays, time)
        ages = now[senders] - arrived
        fresh = (arrived > 0) & (time - self.published(senders, arrived) <= self.staleness + 1e-9)
        learners, into, out_of, old = (
            part.astype(np.int32) for part in (np.flatnonzero(acting), receivers, senders, ages)
        )
        turn = Turn(learners, into, out_of, weights, old, time)
        return with_arrived(turn, fresh | (receivers == senders))

    def _newest(self, senders: Any, delays: Any, time: float) -> Any:
        """The number of the newest publication of each sender that has arrived by now."""
        count = np.floor((time - delays) / self._durations[senders] + 1e-9).astype(np.int64)
        late = self.published(senders, count) + delays > time + 1e-9
        return np.maximum(count - late, 0)
