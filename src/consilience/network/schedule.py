"""Schedules: networks that change, as sequences of turns.

A turn says who learns, and who hears whom with what weight. A fixed W, a star whose edges take turns, gossip, lost
messages, agents that come and go, agents that do not wait for each other, and a schedule recorded in a run are all
sequences of turns, over any graph. One rule holds for all: weight that did not arrive returns to the agent itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from consilience.errors import InputError
from consilience.network.network import Network
from consilience.network.turns import Turn, check_turn, rows_of, with_arrived
from consilience.streams import stream


class Most(NamedTuple):
    """The most learners, receivers and edges that any turn of a schedule has, and the oldest age."""

    learners: int
    receivers: int
    edges: int
    age: int


@runtime_checkable
class Schedule(Protocol):
    """A sequence of turns. The same number always gives the same turn, so a run can be carried on or replayed."""

    @property
    def agents(self) -> int:
        """N."""
        ...

    @property
    def most(self) -> Most:
        """How large a turn can be."""
        ...

    @property
    def repeats(self) -> int | None:
        """After how many turns it begins anew, where it does."""
        ...

    def turn(self, number: int) -> Turn:
        """What happens in round `number`, counted from 1."""
        ...


class Fixed:
    """Everybody learns and pools with the same W in every round.

    >>> from consilience.network import star
    >>> Fixed(star(8, 0.5)).turn(1).learners.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """

    repeats = 1

    def __init__(self, network: Network) -> None:
        self.agents = network.agents
        self.most = Most(network.agents, network.agents, network.edges, 0)
        self._learners = np.arange(network.agents, dtype=np.int32)
        self._rows = rows_of(network.W)

    def turn(self, number: int) -> Turn:
        """The same every time."""
        return Turn(self._learners, *self._rows, float(number))


class RotatingStar:
    """The paper's time-varying star: agent 0 in the middle, and in every round the next few of N edges around it.

    Only those learn (Supplement, Sec. 1.4.2). The centre hears itself and each of them with equal weight; they put
    `trust` on the centre and the rest on themselves.

    >>> RotatingStar(edges=4, at_once=2).turn(2).learners.tolist()
    [0, 3, 4]
    """

    def __init__(self, edges: int, at_once: int, trust: float = 0.5) -> None:
        if not 1 <= at_once <= edges or edges % at_once:
            raise InputError(f"at_once: must divide the {edges} edges, got {at_once}")
        self.agents, self.at_once, self.trust = edges + 1, at_once, trust
        self.repeats = edges // at_once
        self.most = Most(at_once + 1, at_once + 1, 3 * at_once + 1, 0)

    def turn(self, number: int) -> Turn:
        """The group whose turn it is, and the centre."""
        first = 1 + (number - 1) % self.repeats * self.at_once
        edges = np.arange(first, first + self.at_once, dtype=np.int32)
        everybody = np.concatenate([[0], edges]).astype(np.int32)
        receivers = np.concatenate([np.zeros(len(everybody), np.int32), np.repeat(edges, 2)])
        senders = np.concatenate([everybody, np.stack([np.zeros_like(edges), edges], 1).reshape(-1)])
        weights = np.concatenate(
            [np.full(len(everybody), 1 / len(everybody)), np.tile([self.trust, 1 - self.trust], len(edges))]
        )
        return Turn(
            everybody, receivers, senders.astype(np.int32), weights, np.zeros(len(receivers), np.int32), float(number)
        )


class Gossip:
    """In every round one random edge of a graph wakes, or a random matching; who is awake learns and averages in pairs.

    >>> from consilience.network import ring
    >>> len(Gossip(ring(6), matching=False).turn(1).learners)
    2
    """

    repeats = None

    def __init__(self, network: Network, matching: bool = False, seed: int = 0) -> None:
        both = sp.coo_array(network.W + network.W.T)
        pairs = np.stack([both.row, both.col], 1)
        self.agents, self.matching, self.seed = network.agents, matching, seed
        self._pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        if not len(self._pairs):
            raise InputError("schedule: gossip needs a graph with an edge between two agents")
        awake = 2 * (min(network.agents // 2, len(self._pairs)) if matching else 1)
        self.most = Most(awake, awake, 2 * awake, 0)

    def turn(self, number: int) -> Turn:
        """Pairs in random order, each taken where both are still free."""
        rng = stream("gossip", self.seed, number)
        if not self.matching:
            chosen = self._pairs[rng.integers(len(self._pairs))][None]
        else:
            free, taken = np.ones(self.agents, bool), []
            for pair in self._pairs[rng.permutation(len(self._pairs))]:
                if free[pair].all():
                    free[pair] = False
                    taken.append(pair)
            chosen = np.array(taken)
        awake = np.sort(chosen.reshape(-1)).astype(np.int32)
        partner = np.empty(self.agents, np.int32)
        partner[chosen[:, 0]], partner[chosen[:, 1]] = chosen[:, 1], chosen[:, 0]
        senders = np.stack([awake, partner[awake]], 1).reshape(-1).astype(np.int32)
        half = np.full(len(senders), 0.5)
        return Turn(awake, np.repeat(awake, 2), senders, half, np.zeros(len(senders), np.int32), float(number))


def everybody_acts(schedule: Schedule) -> bool:
    """Whether all agents learn and pool in every turn, as over a fixed W.

    >>> from consilience.network import ring
    >>> everybody_acts(Fixed(ring(5))), everybody_acts(RotatingStar(edges=4, at_once=2))
    (True, False)
    """
    if not schedule.repeats or min(schedule.most[:2]) < schedule.agents:
        return False
    turns = (schedule.turn(number) for number in range(1, schedule.repeats + 1))
    return all(len(turn.learners) == len(np.unique(turn.receivers)) == schedule.agents for turn in turns)


def within(schedule: Any) -> Iterator[Any]:
    """A schedule, the one it is made from, where it is, the one that is made from, and so on.

    >>> from consilience.network import ring
    >>> [type(each).__name__ for each in within(Unheard(Lossy(Fixed(ring(3)), 0.1)))]
    ['Unheard', 'Lossy', 'Fixed']
    """
    while schedule is not None:
        yield schedule
        schedule = getattr(schedule, "schedule", None)


class Lossy:
    """Another schedule whose messages are lost, each with the same probability, independently.

    With clocks, what is lost is the use of what an agent holds in one turn; it may use it in its next.

    >>> from consilience.network import ring
    >>> bool(np.isclose(Lossy(Fixed(ring(5)), 0.5).turn(3).matrix(5).sum(1), 1).all())
    True
    """

    repeats = None

    def __init__(self, schedule: Schedule, probability: float, seed: int = 0) -> None:
        if not 0 <= probability < 1:
            raise InputError(f"probability: must be at least 0 and below 1, got {probability:g}")
        self.agents, self.most = schedule.agents, schedule.most
        self.schedule, self.probability, self.seed = schedule, probability, seed
        self._layer = sum(isinstance(each, Lossy) for each in within(schedule))

    def turn(self, number: int) -> Turn:
        """What arrived."""
        turn = self.schedule.turn(number)
        arrived = stream("loss", self.seed, number, self._layer).random(len(turn.senders)) >= self.probability
        return with_arrived(turn, arrived)


class Unheard:
    """Another schedule in which everybody does the same but hears nobody: agents alone.

    >>> from consilience.network import ring
    >>> Unheard(Fixed(ring(3))).turn(1).matrix(3).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, schedule: Schedule) -> None:
        self.agents, self.repeats, self.schedule = schedule.agents, schedule.repeats, schedule
        self.most = schedule.most._replace(edges=schedule.most.receivers, age=0)

    def turn(self, number: int) -> Turn:
        """Nothing arrives."""
        turn = self.schedule.turn(number)
        alone = with_arrived(turn, np.zeros(len(turn.senders), bool))
        return alone._replace(ages=np.zeros_like(alone.ages))  # of itself an agent has the newest


class Replay:
    """Turns that were recorded.

    >>> from consilience.network import ring
    >>> kept = [Lossy(Fixed(ring(4)), 0.4).turn(n) for n in (1, 2)]
    >>> Replay(4, kept).turn(2) is kept[1]
    True
    """

    repeats = None

    def __init__(self, agents: int, turns: Sequence[Turn]) -> None:
        self.agents, self.turns = agents, turns
        for number, turn in enumerate(turns, start=1):
            check_turn(turn, agents, number)
        sizes = [(len(t.learners), len(np.unique(t.receivers)), len(t.senders), t.ages.max(initial=0)) for t in turns]
        self.most = Most(*(int(most) for most in np.max(sizes, axis=0))) if turns else Most(0, 0, 0, 0)

    def turn(self, number: int) -> Turn:
        """What was recorded."""
        if not 1 <= number <= len(self.turns):
            raise InputError(f"schedule: has {len(self.turns)} recorded rounds, round {number} was asked for")
        return self.turns[number - 1]
