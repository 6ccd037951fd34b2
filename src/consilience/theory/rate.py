"""The rate K(Θ) at which wrong parameters die out, and how many rounds Theorem 1 asks for."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from consilience.errors import InputError


class Rate(NamedTuple):
    """`K`: the rate, in nats a round; `hardest`: the number of the wrong hypothesis that attains it."""

    K: float
    hardest: int


def rate(v: Float[np.ndarray, "agents"], information: Float[np.ndarray, "agents hypotheses"], truth: int) -> Rate:
    """K(Θ) = min over θ ≠ θ* of Σ_j v_j I_j(θ*, θ) (eq. 7).

    A hypothesis that no agent can tell from θ* belongs to Θ* and is not counted as wrong.

    >>> rate(np.array([0.25, 0.75]), np.array([[0.0, 0.4, 0.0], [0.0, 0.0, 0.2]]), truth=0)
    Rate(K=0.1, hardest=1)
    """
    pooled = v @ information
    wrong = wrong_hypotheses(information)
    if not wrong:
        raise InputError(f"likelihoods: no hypothesis can be told from the truth {truth} by any agent")
    hardest = min(wrong, key=lambda k: float(pooled[k]))
    return Rate(float(pooled[hardest]), hardest)


def wrong_hypotheses(information: Float[np.ndarray, "agents hypotheses"]) -> list[int]:
    """The hypotheses outside Θ*: those that at least one agent can tell from the truth."""
    return [int(k) for k in np.flatnonzero(information.max(axis=0, initial=0.0) > 1e-12)]


def log_ratio_bound(likelihoods: Float[np.ndarray, "agents hypotheses outcomes"], samples: int = 1) -> float:
    """C = |log(L/α)|: no log-likelihood ratio of one round is larger."""
    return float(samples * np.log(likelihoods.max() / likelihoods.min()))


def sample_size(
    C: float,
    agents: int,
    hypotheses: int,
    gap: float,
    epsilon: float,
    delta: float,
    version: Literal["paper", "corrected"] = "corrected",
) -> int:
    """The rounds n after which max_i max_θ b_i(θ) < exp(−n(K − ε)) with probability at least 1 − δ (Theorem 1).

    n ≥ 8 C log(N|Θ|/δ) / (ε² gap) as printed (`paper`); McDiarmid's inequality for ratios in [−C, C] gives C² in place
    of C (`corrected`). Both rest on Lemma 1; where W breaks the lemma, use `certain_sample_size`.

    >>> sample_size(1.5, agents=9, hypotheses=4, gap=0.5, epsilon=0.1, delta=0.05)
    23686
    """
    for name, value, upper in (("epsilon", epsilon, math.inf), ("delta", delta, 1.0), ("gap", gap, math.inf)):
        if not 0 < value < upper:
            raise InputError(
                f"{name}: must be greater than 0{'' if upper == math.inf else ' and below 1'}, got {value:g}"
            )
    scale = C if version == "paper" else C**2
    # In logarithms of δ and with ε divided out twice, so that no number under- or overflows on the way.
    rounds = 8 * scale * (math.log(agents * hypotheses) - math.log(delta)) / gap / epsilon / epsilon
    if not math.isfinite(rounds):
        raise InputError(f"epsilon: is too small for a finite number of rounds, got {epsilon:g}")
    return math.ceil(rounds)


def certain_sample_size(C: float, agents: int, hypotheses: int, lemma_sum: float, epsilon: float, delta: float) -> int:
    """The same promise without Lemma 1's bound, from the sum itself: n ≥ max(8 C² log(N|Θ|/δ) / ε², 2 C S / ε).

    The first keeps chance below ε/2 (McDiarmid), the second the memory of where evidence came from, S/n times C. S is
    Lemma 1's sum from k = 0 on, because public beliefs have that term: `lemma_sum` + 2.

    >>> certain_sample_size(1.5, agents=9, hypotheses=4, lemma_sum=2.1, epsilon=0.1, delta=0.05)
    11843
    """
    chance = sample_size(C, agents, hypotheses, 1.0, epsilon, delta)
    return max(chance, math.ceil(2 * C * (lemma_sum + 2) / epsilon))
