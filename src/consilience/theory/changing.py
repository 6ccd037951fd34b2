"""Theory for networks that change: what the turns that really happened make of everybody's evidence.

With the realised W_t, agent i's log ratio after n turns is Σ_j Σ_t (weight of agent j's evidence of turn t in i's
belief) × its log-likelihood ratio. In a fixed network these weights are powers of W and tend to v_j; in a changing one
they are entries of the ergodic product W_n ⋯ W_t, and an agent that does not learn in a turn has no evidence of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from consilience.network.schedule import Schedule


class Realised(NamedTuple):
    """What a schedule did in its first n turns.

    counts: how often agent j's evidence of one turn counts in agent i's belief: Σ_t of its weights.
    centrality: how much of an agent's evidence a turn everybody holds, on average: counts / n, over agents i. In a
    fixed network it tends to v; it sums to the share of agents that learn, each by its weight.
    spread: the largest distance of any agent's row from that, relative to the largest centrality.
    contraction: Dobrushin's coefficient of the ergodic product W_n ⋯ W_1; 0 where everybody has forgotten who said
    what. None where older beliefs are heard, so that no such product exists.
    """

    turns: int
    counts: Float[np.ndarray, "agents agents"]
    centrality: Float[np.ndarray, "agents"]
    spread: float
    contraction: float | None

    def mean_log_ratio(self, information: Float[np.ndarray, "agents"]) -> Float[np.ndarray, "agents"]:
        """The exact mean of every agent's pooled log b(θ*)/b(θ), prior aside, when a turn has information I_j."""
        return np.asarray(self.counts @ information)

    def rate(self, information: Float[np.ndarray, "agents"]) -> float:
        """Σ_j v_j I_j with the realised centrality: the predicted decay of b(θ), in nats a turn."""
        return float(self.centrality @ information)


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
    agents = schedule.agents
    counts = np.zeros((agents, agents))
    product: np.ndarray | None = np.eye(agents) if schedule.most.age == 0 else None
    memory = schedule.most.age + 1
    said = np.zeros((memory, agents, agents))  # what everybody said, the newest first
    wanted = {}
    for number in range(1, max(rounds) + 1):
        turn = schedule.turn(number)
        counts[turn.learners, turn.learners] += 1
        said[1:, turn.learners] = said[:-1, turn.learners]
        said[0, turn.learners] = counts[turn.learners]
        if len(turn.receivers):
            hearing, begin = np.unique(turn.receivers, return_index=True)
            heard = turn.weights[:, None] * said[turn.ages, turn.senders]
            counts[hearing] = np.add.reduceat(heard, begin, axis=0)
        if product is not None:
            product = turn.matrix(agents) @ product
        if number in rounds:
            centrality = counts.mean(0) / number
            spread = float(np.abs(counts / number - centrality).max() / max(centrality.max(), 1e-300))
            forgotten = None if product is None else _dobrushin(product)
            wanted[number] = Realised(number, counts.copy(), centrality, spread, forgotten)
    return [wanted[number] for number in rounds]


def mixing_windows(schedule: Schedule, turns: int, level: float = 0.5) -> list[int]:
    """How many turns it takes, one window after another, until the product of their W_t contracts to `level`.

    Within a window any two agents' shares of what anybody said come closer by at least that factor (Dobrushin's
    coefficient), so the longest window bounds how fast the network forgets who said what. Ages are not looked at.

    >>> from consilience.network import Fixed, complete
    >>> mixing_windows(Fixed(complete(4)), turns=3)
    [1, 1, 1]
    """
    lengths, product, length = [], np.eye(schedule.agents), 0
    for number in range(1, turns + 1):
        product, length = schedule.turn(number).matrix(schedule.agents) @ product, length + 1
        if _dobrushin(product) <= level:
            lengths.append(length)
            product, length = np.eye(schedule.agents), 0
    return lengths


def _dobrushin(P: Float[np.ndarray, "agents agents"]) -> float:
    """Half the largest L1 distance between two rows."""
    return max(float(np.abs(P - row).sum(1).max()) for row in P) / 2
