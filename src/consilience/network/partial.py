"""A few agents at a time: in every round some are drawn, learn, and everybody hears their average."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from consilience.errors import InputError
from consilience.network.schedule import Most
from consilience.network.turns import Turn
from consilience.streams import stream


class Participating:
    """In every round a fraction of the agents that have data learns; all hear these, by their shares of the data.

    >>> few = Participating(np.array([10, 30, 20, 0]), fraction=0.5)
    >>> len(few.turn(1).learners), bool(np.isclose(few.turn(1).matrix(4).sum(1), 1).all())
    (2, True)
    """

    repeats = None

    def __init__(self, sizes: Int[np.ndarray, "agents"], fraction: float, seed: int = 0) -> None:
        if not 0 < fraction <= 1:
            raise InputError(f"fraction: must be above 0 and at most 1, got {fraction:g}")
        self.agents, self.seed = len(sizes), seed
        self._sizes, self._able = np.asarray(sizes, float), np.flatnonzero(sizes)
        self.chosen = max(1, round(fraction * len(self._able)))
        self.most = Most(self.chosen, self.agents, self.agents * self.chosen, 0)

    def turn(self, number: int) -> Turn:
        """Who is drawn."""
        order = stream("participation", self.seed, number).permutation(self._able)
        chosen = np.sort(order[: self.chosen]).astype(np.int32)
        weights = self._sizes[chosen] / self._sizes[chosen].sum()
        everybody = np.arange(self.agents, dtype=np.int32)
        edges = self.agents * self.chosen
        return Turn(
            chosen,
            np.repeat(everybody, self.chosen),
            np.tile(chosen, self.agents),
            np.tile(weights, self.agents),
            np.zeros(edges, np.int32),
            float(number),
        )
