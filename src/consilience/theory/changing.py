"""Theory for networks that change: what the turns that really happened make of everybody's evidence.

With the realised W_t, agent i's log ratio after n turns is Σ_j Σ_t (weight of agent j's evidence of turn t in i's
belief) × its log-likelihood ratio. In a fixed network these weights are powers of W and tend to v_j; in a changing one
they are entries of the ergodic product W_n ⋯ W_t, and an agent that does not learn in a turn has no evidence of it.
"""

from __future__ import annotations

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
    agents = schedule.agents
    counts = np.zeros((agents, agents))
    product: np.ndarray | None = np.eye(agents) if schedule.most.age == 0 else None
    memory = schedule.most.age + 1
    said = np.zeros((memory, agents, agents))  # what everybody said, the newest first
    for number in range(1, turns + 1):
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
    centrality = counts.mean(0) / turns
    spread = float(np.abs(counts / turns - centrality).max() / max(centrality.max(), 1e-300))
    return Realised(turns, counts, centrality, spread, None if product is None else _dobrushin(product))


def _dobrushin(P: Float[np.ndarray, "agents agents"]) -> float:
    """Half the largest L1 distance between two rows."""
    return max(float(np.abs(P - row).sum(1).max()) for row in P) / 2
