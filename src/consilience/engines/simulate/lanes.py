"""Repetitions side by side: where every seed is computed, so that its numbers do not depend on the company it has.

A compiled sum rounds by the shape of its arrays and the place in them. So seed S has the same place in arrays of the
same shape whoever is computed beside it: lane S mod `width` of the block S div `width`. Blocks are played one after
another. The width follows from the size of an arm, never from how many seeds there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from consilience.engines.arm import Arm, state_shapes

NUMBERS_AT_ONCE = 4096  # of a block, about: enough work for a loop over them, and little for a single seed
WIDEST = 64


class Lanes(NamedTuple):
    """The lanes of some seeds.

    width: how many lanes are computed at once.
    seeds: the seed in every lane; lanes to spare have seeds that nobody asked for.
    place: the lane of each seed that was asked for.
    repetition: the number of a lane's seed among those asked for (of a spare lane: of any).

    >>> lanes_of([3, 4], width=4).place.tolist(), lanes_of([3, 4], width=4).seeds.tolist()
    ([3, 4], [0, 1, 2, 3, 4, 5, 6, 7])
    """

    width: int
    seeds: Int[np.ndarray, "lanes"]
    place: Int[np.ndarray, "asked"]
    repetition: Int[np.ndarray, "lanes"]


def lanes_of(seeds: Sequence[int], width: int) -> Lanes:
    """The blocks in which these seeds lie, one after another."""
    asked = np.asarray(seeds, np.int64)
    blocks, block = np.unique(asked // width, return_inverse=True)
    place = block * width + asked % width
    repetition = np.zeros(len(blocks) * width, np.int32)
    repetition[place] = np.arange(len(asked))
    return Lanes(width, (blocks[:, None] * width + np.arange(width)).reshape(-1), place, repetition)


def width_for(arm: Arm, agents: int) -> int:
    """How many seeds of an arm are computed at once: a power of two; one where an agent is work enough for a core."""
    if arm.steps is not None:
        return 1
    numbers = agents * sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(state_shapes(arm)))
    return 1 << max(min(NUMBERS_AT_ONCE // max(numbers, 1), WIDEST).bit_length() - 1, 0)
