"""Flows: everybody gives all it has away in equal parts, to itself and to its listeners; nothing is lost, only late."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from consilience.errors import InputError
from consilience.network.following import Following
from consilience.network.network import Network
from consilience.network.schedule import Fixed, Schedule
from consilience.network.turns import Turn


class Taken(NamedTuple):
    """How often everybody has published, and up to which publication everybody has taken its part of everybody's."""

    said: Int[np.ndarray, "agents"]
    taken: Int[np.ndarray, "agents agents"]


class Flows(Following):
    """Another schedule, in which a message is divided among its sender and all who listen to it.

    Who hears j takes its part, 1 / (1 + listeners of j), of all that j has published since it last heard j. So what is
    given away is kept by somebody, or on the way to somebody: sums over all agents never change, whatever is lost or
    late (ratio consensus with running sums; Hadjicostis, Vaidya and Domínguez-García 2016). It needs no weights of its
    own, only that everybody has a listener and that all hear each other in the long run.

    >>> from consilience.network import ring
    >>> Flows(ring(4), rounds=3).turn(1).weights.round(3).tolist()[:3]
    [0.333, 0.333, 0.333]
    """

    def __init__(self, hears: Network | Schedule, rounds: int) -> None:
        schedule: Schedule = Fixed(hears) if isinstance(hears, Network) else hears
        self._listens = np.zeros((schedule.agents, schedule.agents), bool)  # who, to whom
        for number in range(1, (1 if isinstance(schedule, Fixed) else rounds) + 1):
            turn = schedule.turn(number)
            self._listens[turn.receivers, turn.senders] = True
        np.fill_diagonal(self._listens, False)
        listeners = self._listens.sum(0)
        if schedule.agents > 1 and not listeners.all():
            nobody = int(np.flatnonzero(listeners == 0)[0])
            raise InputError(f"consensus: tracking needs a listener for everybody, nobody listens to agent {nobody}")
        self._part, self._known = 1 / (1 + listeners), rounds
        super().__init__(hears, rounds)

    def _begun(self) -> Taken:
        return Taken(np.zeros(self.agents, np.int64), np.zeros((self.agents, self.agents), np.int64))

    def _next(self, at: Taken, turn: Turn) -> Turn:
        learners = turn.learners
        at.said[learners] += 1
        new = at.taken.copy()
        new[learners, learners] = at.said[learners]
        others = turn.receivers != turn.senders
        receivers, senders = turn.receivers[others], turn.senders[others]
        if not (known := self._listens[receivers, senders]).all():
            who, whom = receivers[~known][0], senders[~known][0]
            raise InputError(
                f"consensus: agent {who} begins to listen to agent {whom} after round {self._known}; "
                "tracking must know all listeners from the start: begin a run of as many rounds"
            )
        np.maximum.at(new, (receivers, senders), np.maximum(at.said[senders] - turn.ages[others], 0))
        takers, givers = np.nonzero(new > at.taken)
        each = (new - at.taken)[takers, givers]
        place = np.repeat(np.arange(len(takers)), each)
        number = np.arange(len(place)) - np.repeat(np.cumsum(each) - each, each)  # 0, 1, … of each pair's new ones
        takers, givers = takers[place].astype(np.int32), givers[place].astype(np.int32)
        ages = at.said[givers] - new[takers, givers] + number
        at.taken[:] = new
        return Turn(learners, takers, givers, self._part[givers], ages.astype(np.int32), turn.time)
