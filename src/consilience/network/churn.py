"""Agents that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool

from consilience.errors import InputError
from consilience.network.schedule import Schedule, within
from consilience.network.turns import Turn, with_arrived
from consilience.streams import stream


class Presence:
    """Who is there: agents stay up and down for geometric times with these means, in rounds.

    Of presences that work together, each needs a seed, or a `layer`, of its own.

    >>> there = Presence(50, up=10, down=5)
    >>> len(there.at(40)), bool(there.at(0).all())
    (50, True)
    """

    def __init__(self, agents: int, up: float | int, down: float | int, seed: int = 0, layer: int = 0) -> None:
        for name, value in (("up", up), ("down", down)):
            if not value >= 1:
                raise InputError(f"{name}: must be at least 1 round, got {value:g}")
        self.agents, self.up, self.down, self.seed, self.layer = agents, up, down, seed, layer
        self._present = [np.ones(agents, bool)]  # before round 1 everybody is there

    def at(self, number: int) -> Bool[np.ndarray, "agents"]:
        """Who is there in a round."""
        while len(self._present) <= number:
            draws = stream("presence", self.seed, len(self._present), self.layer).random(self.agents)
            now = self._present[-1]
            self._present.append(np.where(now, draws >= 1 / self.up, draws < 1 / self.down))
        return self._present[number]


class Churn:
    """Another schedule whose agents come and go.

    Who is down does not learn, speak or hear, and comes back with what it had. Where older beliefs are heard, or
    beliefs of agents that do not learn in the same turn, it is what the other schedule lets hear, if it was published:
    what an agent would have said while it was down is missing, and its weight returns. (In `Asynchronous` with a
    `Presence` of its own, agents go on pooling what they hold of those who have left.)

    >>> from consilience.network import Fixed, ring
    >>> churn = Churn(Fixed(ring(50)), up=10, down=5)
    >>> 0 < len(churn.turn(40).learners) < 50
    True
    """

    repeats = None

    def __init__(self, schedule: Schedule, up: float | int, down: float | int, seed: int = 0) -> None:
        self.agents, self.most, self.schedule = schedule.agents, schedule.most, schedule
        layer = sum(getattr(each, "presence", None) is not None for each in within(schedule))
        self.presence = Presence(schedule.agents, up, down, seed, layer)
        # By the end of each turn, from turn 0: how often everybody was to publish. And how often an agent had really
        # published when it was to do so the k-th time; what it has said at first (k = 0) is its initial belief.
        self._planned, self._published = [np.zeros(self.agents, np.int64)], np.zeros((self.agents, 1), np.int64)

    def turn(self, number: int) -> Turn:
        """What is left when those who are away, and what they would have said, are left out."""
        turn, there = self.schedule.turn(number), self.presence.at(number)
        kept = there[turn.receivers]
        turn = turn._replace(
            learners=turn.learners[there[turn.learners]],
            receivers=turn.receivers[kept],
            senders=turn.senders[kept],
            weights=turn.weights[kept],
            ages=turn.ages[kept],
        )
        arrived = there[turn.senders]
        # What is said in this very turn needs no looking back.
        earlier = np.flatnonzero(arrived & ((turn.ages > 0) | ~np.isin(turn.senders, turn.learners)))
        if len(earlier):
            ages = turn.ages.copy()
            arrived[earlier], ages[earlier] = self._said(number, turn.senders[earlier], turn.ages[earlier])
            turn = turn._replace(ages=ages)
        return with_arrived(turn, arrived)

    def _said(self, number: int, senders: Any, ages: Any) -> tuple[Any, Any]:
        """Whether what is to be heard was published, and how old it is with what was not published left out."""
        self._follow(number)
        planned = self._planned[number][senders]
        meant = np.maximum(planned - ages, 0)
        published = self._published[senders, meant]
        really = (meant == 0) | (published > self._published[senders, np.maximum(meant - 1, 0)])
        return really, self._published[senders, planned] - published

    def _follow(self, number: int) -> None:
        while len(self._planned) <= number:
            turn = len(self._planned)
            learners = self.schedule.turn(turn).learners
            planned = self._planned[-1].copy()
            planned[learners] += 1
            self._planned.append(planned)
            if planned.max() >= self._published.shape[1]:
                self._published = np.pad(self._published, ((0, 0), (0, self._published.shape[1])))
            last = self._published[learners, planned[learners] - 1]
            self._published[learners, planned[learners]] = last + self.presence.at(turn)[learners]
