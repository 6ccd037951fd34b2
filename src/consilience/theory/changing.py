"""Theory for networks that change: what the turns that really happened make of everybody's evidence.

After n turns agent i's belief is a weighted sum (of natural parameters) of everybody's initial beliefs and of what
everybody learnt in every turn. In a fixed network these weights are powers of W and tend to v_j. Otherwise they are
followed here by the engine's own rule: who learns publishes what it then holds, and who pools takes its row of what was
said last, or earlier (by age). Where everybody who is heard has learnt in the same turn, this is the product
W_n ⋯ W_1; who is heard without having learnt is heard with what it said before, and no such product exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from consilience.network.schedule import Schedule
from consilience.network.turns import Turn


class Realised(NamedTuple):
    """What a schedule did in its first n turns.

    counts: how often agent j's evidence of one turn counts in agent i's belief: Σ_t of its weights.
    centrality: how much of an agent's evidence a turn everybody holds, on average: counts / n, over agents i. In a
    fixed network it tends to v; it sums to the share of agents that learn, each by its weight.
    spread: the largest distance of any agent's row from that, relative to the largest centrality.
    contraction: Dobrushin's coefficient of the map from initial beliefs to those held now (W_n ⋯ W_1 where that product
    exists); beliefs that differed at the start differ by at most this factor, 0 where it is forgotten who began how.
    """

    turns: int
    counts: Float[np.ndarray, "agents agents"]
    centrality: Float[np.ndarray, "agents"]
    spread: float
    contraction: float

    def mean_log_ratio(self, information: Float[np.ndarray, "agents *rest"]) -> Float[np.ndarray, "agents *rest"]:
        """The exact mean of every agent's pooled log b(θ*)/b(θ), prior aside, when a turn has information I_j."""
        return np.tensordot(self.counts, information, axes=1)

    def rate(self, information: Float[np.ndarray, "agents"]) -> float:
        """Σ_j v_j I_j with the realised centrality: the predicted decay of b(θ), in nats a turn."""
        return float(self.centrality @ information)


class Shares(NamedTuple):
    """Everybody's belief, and the last few that everybody said (the newest first), as sums of shares of sources."""

    held: Float[np.ndarray, "agents sources"]
    said: Float[np.ndarray, "memory agents sources"]

    def play(self, turn: Turn, given_away: bool = False) -> None:
        """Who learns publishes what it holds; who pools takes its row of what was said.

        given_away: what is published is held no longer, and what is taken comes to what is held (running sums).
        """
        self.said[1:, turn.learners] = self.said[:-1, turn.learners]
        self.said[0, turn.learners] = self.held[turn.learners]
        if given_away:
            self.held[turn.learners] = 0
        if len(turn.receivers):
            hearing, begin = np.unique(turn.receivers, return_index=True)
            heard = np.add.reduceat(turn.weights[:, None] * self.said[turn.ages, turn.senders], begin, axis=0)
            self.held[hearing] = self.held[hearing] + heard if given_away else heard


def realised(schedule: Schedule, turns: int) -> Realised:
    """Follow everybody's evidence through the first turns of a schedule.

    >>> from consilience.network import Fixed, star
    >>> from consilience.theory import stationary
    >>> bool(np.allclose(realised(Fixed(star(4, 0.5)), 2000).centrality, stationary(star(4, 0.5)), atol=1e-3))
    True
    """
    return realised_at(schedule, [turns])[0]


def realised_at(schedule: Schedule, rounds: Sequence[int]) -> list[Realised]:
    """The same after each of these turns."""
    agents, memory = schedule.agents, schedule.most.age + 1
    # Before anybody has learnt there is no evidence, and everybody's initial belief is what it holds and has said.
    evidence = Shares(np.zeros((agents, agents)), np.zeros((memory, agents, agents)))
    initial = Shares(np.eye(agents), np.tile(np.eye(agents), (memory, 1, 1)))
    wanted = {}
    for number in range(1, max(rounds) + 1):
        turn = schedule.turn(number)
        evidence.held[turn.learners, turn.learners] += 1
        evidence.play(turn)
        initial.play(turn)
        if number in rounds:
            counts = evidence.held.copy()
            centrality = counts.mean(0) / number
            spread = float(np.abs(counts / number - centrality).max() / max(centrality.max(), 1e-300))
            wanted[number] = Realised(number, counts, centrality, spread, _dobrushin(initial.held))
    return [wanted[number] for number in rounds]


def mixing_windows(schedule: Schedule, turns: int, level: float = 0.5) -> list[int]:
    """How many turns it takes, one window after another, until differences have contracted to `level`.

    What matters at the end of a turn is everybody's belief, and whatever was said before and is heard later (within
    these turns). A window is over when any two of these are closer, by at least that factor, than the farthest two were
    when it began, whatever they were: Dobrushin's coefficient of the map between them. So differences shrink to at
    most level^k in k windows, and the longest window bounds how fast the network forgets who said what.

    >>> from consilience.network import Fixed, complete
    >>> mixing_windows(Fixed(complete(4)), turns=3)
    [1, 1, 1]
    """
    agents, memory = schedule.agents, schedule.most.age + 1
    heard_later = _heard_later(schedule, turns)
    now = Shares(np.eye(agents), np.tile(np.eye(agents), (memory, 1, 1)))
    lengths, length = [], 0
    for number in range(1, turns + 1):
        now.play(schedule.turn(number))
        length += 1
        later = heard_later[number]
        sources = now.held.shape[1]
        if _within(np.concatenate([now.held, now.said.reshape(-1, sources)[later]]), level):
            lengths.append(length)
            length, sources = 0, agents + len(later)
            now = Shares(np.eye(agents, sources), np.zeros((memory, agents, sources)))
            now.said.reshape(-1, sources)[later] = np.eye(len(later), sources, k=agents)
    return lengths


def mixing_window(schedule: Schedule, turns: int, level: float = 0.5) -> int | None:
    """The longest of the mixing windows; None where none ended, or one as long as that was not over at the end.

    >>> from consilience.network import IDLE, Fixed, Replay, complete
    >>> mixing_window(Replay(4, [Fixed(complete(4)).turn(1), IDLE, IDLE]), turns=3) is None
    True
    """
    windows = mixing_windows(schedule, turns, level)
    longest = max(windows, default=0)
    return longest if longest > turns - sum(windows) else None


def _heard_later(schedule: Schedule, turns: int) -> list[Int[np.ndarray, "places"]]:
    """At the end of each turn, from turn 0: the places, in `Shares.said`, of what is heard in a later one."""
    later = np.zeros((schedule.most.age + 1, schedule.agents), bool)
    places = [np.flatnonzero(later)]
    for number in range(turns, 0, -1):
        turn = schedule.turn(number)
        later[turn.ages, turn.senders] = True
        # Before a learner published, what is one older now was the newest.
        later[:-1, turn.learners] = later[1:, turn.learners]
        later[-1, turn.learners] = False
        places.append(np.flatnonzero(later))
    return places[::-1]


def _dobrushin(P: Float[np.ndarray, "rows sources"]) -> float:
    """Half the largest L1 distance between two rows."""
    return max(float(np.abs(P - row).sum(1).max()) for row in P) / 2


def _within(P: Float[np.ndarray, "rows sources"], level: float) -> bool:
    """Whether Dobrushin's coefficient is at most `level`; the first row that is too far from another decides."""
    return all(float(np.abs(P - row).sum(1).max()) <= 2 * level for row in P)
