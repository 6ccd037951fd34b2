"""Flows: everybody gives what it has away in parts, to itself and to those who listen; nothing is lost, only late."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from consilience.errors import InputError
from consilience.network.following import Following
from consilience.network.network import Network
from consilience.network.schedule import Fixed, Schedule
from consilience.network.turns import Turn


class Owed:
    """Where everybody stands: how often it has published, whom it has heard since, and what is on the way.

    `known` is up to which publication everybody has heard everybody.

    A row of `parts` is (taker, giver, publication), `sizes` how much of that publication is for the taker.
    """

    def __init__(self, agents: int) -> None:
        self.said: Int[np.ndarray, "agents"] = np.zeros(agents, np.int64)
        self.lately: Bool[np.ndarray, "agents agents"] = np.zeros((agents, agents), bool)
        self.known: Int[np.ndarray, "agents agents"] = np.zeros((agents, agents), np.int64)
        self.parts: Int[np.ndarray, "owed 3"] = np.zeros((0, 3), np.int64)
        self.sizes: Float[np.ndarray, "owed"] = np.zeros(0)

    def add(self, takers: np.ndarray, givers: np.ndarray, sizes: np.ndarray) -> None:
        """Parts of the givers' newest publications."""
        new = np.stack([takers, givers, self.said[givers]], axis=1)
        self.parts, self.sizes = np.concatenate([self.parts, new]), np.concatenate([self.sizes, sizes])

    def take(self, known: Int[np.ndarray, "agents agents"]) -> Taken:
        """What is taken, in order, where agent i knows of agent j's publications up to known[i, j]."""
        takers, givers, publications = self.parts.T
        due = publications <= known[takers, givers]
        ages = self.said[givers] - publications
        order = np.lexsort([ages[due], givers[due], takers[due]])
        taken = Taken(*(part[due][order] for part in (takers, givers, self.sizes, ages)))
        self.parts, self.sizes = self.parts[~due], self.sizes[~due]
        return taken


class Taken(NamedTuple):
    """Parts that are taken in a turn: by whom, of whom, how large, of how old a publication."""

    takers: Int[np.ndarray, "taken"]
    givers: Int[np.ndarray, "taken"]
    sizes: Float[np.ndarray, "taken"]
    ages: Int[np.ndarray, "taken"]


class Flows(Following):
    """Another schedule, in which a message is divided in equal parts among its sender and those who listen to it.

    Who hears j takes its parts of all that j has published since it last heard j. So what is given away is kept by
    somebody, or on the way to somebody: sums over all agents never change, whatever is lost or late (ratio consensus
    with running sums; Hadjicostis, Vaidya and Domínguez-García 2016). It needs no weights of its own, only that
    everybody has a listener and that all hear each other in the long run.

    Who gives to listeners that are not there has ever less, in which what it learns next counts ever more. So a
    listener is given a part only if it was heard since the last publication, or can never be heard; and who has heard
    nobody since then keeps all.

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
        self._known = rounds
        super().__init__(hears, rounds)

    def _begun(self) -> Owed:
        return Owed(self.agents)

    def _next(self, at: Owed, turn: Turn) -> tuple[Turn, int]:
        learners, others = turn.learners, turn.receivers != turn.senders
        receivers, senders = turn.receivers[others], turn.senders[others]
        if not (known := self._listens[receivers, senders]).all():
            who, whom = receivers[~known][0], senders[~known][0]
            raise InputError(
                f"consensus: agent {who} begins to listen to agent {whom} after round {self._known}; "
                "tracking must know all listeners from the start: begin a run of as many rounds"
            )
        at.said[learners] += 1
        at.lately[receivers, senders] = True  # whom it hears in this turn is there, as a connection tells
        gives = self._given_to(learners, at.lately[learners])
        at.lately[learners] = False
        part = 1 / gives.sum(1)
        row, to = np.nonzero(gives)
        at.add(to, learners[row], part[row])
        heard = np.zeros((self.agents, self.agents), np.int64)  # up to which publication, by whom, of whom
        np.fill_diagonal(heard, at.said)
        np.maximum.at(heard, (receivers, senders), np.maximum(at.said[senders] - turn.ages[others], 0))
        taken = at.take(heard)
        takers, givers, ages = (each.astype(np.int32) for each in (taken.takers, taken.givers, taken.ages))
        np.fill_diagonal(heard, 0)
        messages = int((heard > at.known).sum())  # news over a link: the newest running sums
        at.known = np.maximum(at.known, heard)
        return Turn(learners, takers, givers, taken.sizes, ages, turn.time), messages

    def _given_to(
        self, learners: Int[np.ndarray, "learners"], lately: Bool[np.ndarray, "learners agents"]
    ) -> Bool[np.ndarray, "learners agents"]:
        """Among whom everybody who publishes now divides it: itself, and who listens and is there."""
        there = lately | ~self._listens[learners]  # of whom nothing can be heard, nothing is known
        gives: Bool[np.ndarray, "learners agents"] = self._listens[:, learners].T & there & lately.any(1, keepdims=True)
        gives[np.arange(len(learners)), learners] = True
        return gives
