"""Random numbers of NumPy: every purpose has its own stream, so that no two ever draw the same numbers from one seed.

A list of numbers as a seed would not do: NumPy fills it up with zeros, so 0 and [0, 0] give the same stream, and the
fifth round of the one is the fifth round of the other. A spawn key is kept apart from the seed by construction.
"""

from __future__ import annotations

import numpy as np

from consilience.errors import InputError, suggestion

WORD = 2**32  # seeds and numbers are one word each of what a stream is made from, so that words never run together

# What is drawn, and the first word of its spawn key. A code is never used again for something else.
PURPOSES: dict[str, int] = {
    "partition": 0,  # the root stream, see below
    "held out": 1,
    "loss": 2,
    "presence": 3,
    "gossip": 4,
    "durations": 5,
    "start vector": 6,  # of eigenvalue solvers: nothing random depends on it, nor on the next
    "order of elimination": 7,
    "kept back": 8,
    "participation": 9,
    "faults of a link": 10,
    "back-off": 11,  # how long a peer waits before it calls again
    "training": 12,
}


def stream(purpose: str, seed: int, number: int = 0, layer: int = 0) -> np.random.Generator:
    """The random numbers of a purpose, by seed and, where it draws anew in every round, by round.

    What draws for a purpose around something that does so too, with the same seed perhaps, is in the next layer.

    >>> bool(stream("loss", seed=0, number=1).random() == stream("presence", seed=0, number=1).random())
    False
    """
    if purpose not in PURPOSES:
        raise InputError(f"purpose: no stream for '{purpose}'; {suggestion(purpose, PURPOSES)}")
    for name, value in (("seed", seed), ("number", number), ("layer", layer)):
        if not 0 <= value < WORD:
            raise InputError(f"{name}: must be from 0 to 2³² − 1, got {value}")
    # Who holds which examples is drawn from the seed alone, as it always was: published records depend on it, and every
    # other purpose has a spawn key, which keeps it apart. It is drawn once, so it has no number.
    for name, value in (("number", number), ("layer", layer)):
        if purpose == "partition" and value:
            raise InputError(f"{name}: a partition is drawn once, got {value}")
    key: tuple[int, ...] = () if purpose == "partition" else (PURPOSES[purpose], int(number))
    key += (int(layer),) if layer else ()
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=key))
