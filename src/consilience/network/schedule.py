"""Networks that change: what happens in a round is a value, a `Turn`.

A turn says who learns, and who hears whom with what weight. A fixed W, a star whose edges take turns, gossip, lost
messages, agents that come and go, agents that do not wait for each other, and a schedule recorded in a run are all
sequences of turns, over any graph. One rule holds for all: weight that did not arrive returns to the agent itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components

from consilience.errors import InputError
from consilience.network.network import Network

TOLERANCE = 1e-8


class Turn(NamedTuple):
    """One round.

    learners: the agents that learn from their data and publish, in order.
    receivers, senders, weights: the rows of W_t of those that pool, sorted by receiver; without a row a belief stays.
    ages: how many publications of the sender ago the belief was current that is heard; 0 is the newest.
    time: on the simulated clock, at the end of the turn.
    """

    learners: Int[np.ndarray, "learners"]
    receivers: Int[np.ndarray, "edges"]
    senders: Int[np.ndarray, "edges"]
    weights: Float[np.ndarray, "edges"]
    ages: Int[np.ndarray, "edges"]
    time: float

    def matrix(self, agents: int) -> Any:
        """W_t as a sparse matrix: who does not pool has 1 on its diagonal."""
        idle = np.setdiff1d(np.arange(agents), self.receivers)
        rows, columns = (np.concatenate([part, idle]) for part in (self.receivers, self.senders))
        return sp.csr_array(
            (np.concatenate([self.weights, np.ones(len(idle))]), (rows, columns)), shape=(agents, agents)
        )


_NOBODY = np.zeros(0, np.int32)
IDLE = Turn(_NOBODY, _NOBODY, _NOBODY, np.zeros(0), _NOBODY, 0.0)  # nobody does anything


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
        rng = np.random.default_rng([self.seed, number])
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


class Lossy:
    """Another schedule whose messages are lost, each with the same probability, independently.

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

    def turn(self, number: int) -> Turn:
        """What arrived."""
        turn = self.schedule.turn(number)
        arrived = np.random.default_rng([self.seed, number]).random(len(turn.senders)) >= self.probability
        return with_arrived(turn, arrived)


class Churn:
    """Another schedule whose agents come and go: up and down for geometric times with these means, in rounds.

    Who is down does not learn, speak or hear, and comes back with what it had.

    >>> from consilience.network import ring
    >>> churn = Churn(Fixed(ring(50)), up=10, down=5)
    >>> 0 < len(churn.turn(40).learners) < 50
    True
    """

    repeats = None

    def __init__(self, schedule: Schedule, up: float | int, down: float | int, seed: int = 0) -> None:
        for name, value in (("up", up), ("down", down)):
            if not value >= 1:
                raise InputError(f"{name}: must be at least 1 round, got {value:g}")
        self.agents, self.most, self.schedule = schedule.agents, schedule.most, schedule
        self.up, self.down, self.seed = up, down, seed
        self._present = [np.ones(schedule.agents, bool)]  # before round 1 everybody is there

    def present(self, number: int) -> Any:
        """Who is there in a round."""
        while len(self._present) <= number:
            draws = np.random.default_rng([self.seed, len(self._present)]).random(self.agents)
            now = self._present[-1]
            self._present.append(np.where(now, draws >= 1 / self.up, draws < 1 / self.down))
        return self._present[number]

    def turn(self, number: int) -> Turn:
        """What is left when those who are away are left out."""
        turn, there = self.schedule.turn(number), self.present(number)
        kept = there[turn.receivers]
        turn = turn._replace(
            learners=turn.learners[there[turn.learners]],
            receivers=turn.receivers[kept],
            senders=turn.senders[kept],
            weights=turn.weights[kept],
            ages=turn.ages[kept],
        )
        return with_arrived(turn, there[turn.senders])


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
        return with_arrived(turn, np.zeros(len(turn.senders), bool))


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


def rows_of(W: Any) -> tuple[Any, Any, Any, Any]:
    """Receivers, senders, weights and ages (all new) of a matrix's nonzero entries."""
    receivers = np.repeat(np.arange(W.shape[0], dtype=np.int32), np.diff(W.indptr))
    return receivers, W.indices.astype(np.int32), W.data, np.zeros(W.nnz, np.int32)


def with_arrived(turn: Turn, arrived: Any) -> Turn:
    """The turn in which only some messages arrive: the others' weight returns to the receiver itself (design, rule 4).

    >>> both = np.array([0, 0], np.int32), np.array([0, 1], np.int32), np.array([0.3, 0.7]), np.array([0, 0], np.int32)
    >>> with_arrived(Turn(np.array([0], np.int32), *both, 1.0), np.array([True, False])).weights.tolist()
    [1.0]
    """
    own = turn.receivers == turn.senders
    hearing, place = np.unique(turn.receivers, return_inverse=True)
    lost = np.bincount(place, np.where(own | arrived, 0.0, turn.weights), minlength=len(hearing))
    missing = np.setdiff1d(hearing, turn.receivers[own])
    kept = own | arrived
    weights = turn.weights + np.where(own, lost[place], 0.0)
    # Who has no edge to itself gets one for what is lost.
    extra = missing[lost[np.searchsorted(hearing, missing)] > 0].astype(np.int32)
    receivers = np.concatenate([turn.receivers[kept], extra])
    order = np.argsort(receivers, kind="stable")
    return Turn(
        turn.learners,
        receivers[order],
        np.concatenate([turn.senders[kept], extra])[order],
        np.concatenate([weights[kept], lost[np.searchsorted(hearing, extra)]])[order],
        np.concatenate([turn.ages[kept], np.zeros(len(extra), np.int32)])[order],
        turn.time,
    )


def check_turn(turn: Turn, agents: int, number: int) -> None:
    """Refuse agents that are not there, weights that are not a distribution, and rows out of order."""
    where = f"schedule: round {number}"
    for what, part in (("learner", turn.learners), ("receiver", turn.receivers), ("sender", turn.senders)):
        if len(wrong := part[(part < 0) | (part >= agents)]):
            raise InputError(f"{where} names {what} {wrong[0]}, there are agents 0 to {agents - 1}")
    if not (np.isfinite(turn.weights) & (turn.weights >= 0)).all():
        raise InputError(f"{where} has a weight that is negative or not finite")
    if (np.diff(turn.receivers) < 0).any():
        raise InputError(f"{where} must be sorted by receiver")
    if (turn.ages < 0).any():
        raise InputError(f"{where} has a negative age")
    sums = np.bincount(turn.receivers, turn.weights, minlength=agents)
    wrong_rows = np.flatnonzero((np.abs(sums - 1) > TOLERANCE) & np.isin(np.arange(agents), turn.receivers))
    if len(wrong_rows):
        row = wrong_rows[0]
        more = "above" if sums[row] > 1 else "below"
        raise InputError(f"{where}: the weights of agent {row} sum to {sums[row]:.10g}, {more} 1")


def check_union(schedule: Schedule, window: int) -> None:
    """Refuse a schedule whose turns, taken together over a window, do not let everybody hear from everybody.

    >>> from consilience.network import from_matrix
    >>> check_union(Fixed(from_matrix([[1.0, 0.0], [0.5, 0.5]])), window=3)
    Traceback (most recent call last):
    consilience.errors.InputError: schedule: over 3 rounds agent 0 never hears from agent 1, not even through others
    """
    union = union_of((schedule.turn(number) for number in range(1, window + 1)), schedule.agents)
    count, label = connected_components(union, connection="strong")
    if count == 1:
        return
    # Components in which nobody hears anybody outside: what happens elsewhere never reaches them.
    rows = np.repeat(np.arange(schedule.agents), np.diff(union.indptr))
    hears_outside = np.zeros(count, bool)
    hears_outside[label[rows[label[rows] != label[union.indices]]]] = True
    deaf = int(np.argmin(hears_outside))
    inside = np.flatnonzero(label == deaf)
    outside = np.flatnonzero(label != deaf)
    raise InputError(
        f"schedule: over {window} rounds {_agents(inside)} never hear{'s' * (len(inside) == 1)} from "
        f"{_agents(outside)}, not even through others"
    )


def union_of(turns: Iterable[Turn], agents: int) -> Any:
    """The graph of everybody who is heard by somebody in any of the turns."""
    pairs = [np.stack([turn.receivers, turn.senders]) for turn in turns]
    receivers, senders = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), int)
    return sp.csr_array((np.ones(len(receivers)), (receivers, senders)), shape=(agents, agents))


def _agents(numbers: Any) -> str:
    if len(numbers) == 1:
        return f"agent {numbers[0]}"
    shown = ", ".join(map(str, numbers[:6]))
    return f"agents {shown}" + (f", … ({len(numbers)} in all)" if len(numbers) > 6 else "")
