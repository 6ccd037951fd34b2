"""Tables of versions: everybody holds the newest of everybody's messages that has reached it, at any distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from consilience.network.following import Following
from consilience.network.network import Network
from consilience.network.schedule import Schedule
from consilience.network.turns import Turn


class Held(NamedTuple):
    """How often everybody has published; which publication of whom everybody holds; the tables that were published.

    `published[k mod memory, j]` is the row of `versions` that agent j sent with its k-th publication.
    """

    said: Int[np.ndarray, "agents"]
    versions: Int[np.ndarray, "agents agents"]
    published: Int[np.ndarray, "memory agents agents"]


class Tables(Following):
    """Another schedule, in which everybody passes on all that it holds, and the newest version of each wins.

    Merging by the newest is idempotent, commutative and associative: loss, delay, repetition and order change nothing
    but the time. A turn has an edge of weight 1 for every agent of whom the receiver has heard, at any distance. Of a
    table only those versions are sent that are newer than what the receiver holds; each is a message. With several
    `passes` what has arrived in a turn is passed on in the same turn, so often, over the links that have no delay: on a
    star, with two, everybody has everybody's newest.

    >>> from consilience.network import path
    >>> turn = Tables(path(3), rounds=9).turn(5)
    >>> turn.senders.tolist(), turn.ages.tolist()  # who is two steps away is heard a turn later
    ([0, 1, 2, 0, 1, 2, 0, 1, 2], [0, 0, 1, 0, 0, 0, 1, 0, 0])
    >>> Tables(path(3), rounds=9).messages(3).tolist()  # at first nobody has anything to pass on
    [4, 6, 6]
    >>> Tables(path(3), rounds=9, passes=2).turn(5).ages.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0]
    """

    def __init__(self, hears: Network | Schedule, rounds: int, passes: int = 1) -> None:
        self._passes = passes
        super().__init__(hears, rounds)

    def _begun(self) -> Held:
        N = self.agents
        memory = self.schedule.most.age + 1
        return Held(np.zeros(N, np.int64), np.zeros((N, N), np.int64), np.zeros((memory, N, N), np.int64))

    def _next(self, at: Held, turn: Turn) -> tuple[Turn, int]:
        memory, learners = len(at.published), turn.learners
        at.said[learners] += 1
        at.versions[learners, learners] = at.said[learners]
        at.published[at.said[learners] % memory, learners] = at.versions[learners]
        heard = np.maximum(at.said[turn.senders] - turn.ages, 0)
        tables = at.published[heard % memory, turn.senders]
        sent = int((tables > at.versions[turn.receivers]).sum())
        np.maximum.at(at.versions, turn.receivers, tables)
        now = turn.ages == 0
        senders, receivers = turn.senders[now], turn.receivers[now]
        for _ in range(1, self._passes):
            tables = at.versions[senders]
            sent += int((tables > at.versions[receivers]).sum())
            np.maximum.at(at.versions, receivers, tables)
        who = np.union1d(turn.receivers, learners).astype(np.int32)
        row, senders = np.nonzero(at.versions[who])
        receivers = who[row]
        ages = (at.said[senders] - at.versions[receivers, senders]).astype(np.int32)
        made = Turn(learners, receivers, senders.astype(np.int32), np.ones(len(senders)), ages, turn.time)
        return made, sent
