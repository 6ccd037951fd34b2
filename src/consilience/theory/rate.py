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
    wrong = [k for k in range(information.shape[1]) if k != truth and information[:, k].max() > 1e-12]
    if not wrong:
        raise InputError(f"likelihoods: no hypothesis can be told from the truth {truth} by any agent")
    hardest = min(wrong, key=lambda k: float(pooled[k]))
    return Rate(float(pooled[hardest]), hardest)


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
    of C (`corrected`), which is the promise to rely on.

    >>> sample_size(1.5, agents=9, hypotheses=4, gap=0.5, epsilon=0.1, delta=0.05)
    23686
    """
    for name, value, upper in (("epsilon", epsilon, math.inf), ("delta", delta, 1.0), ("gap", gap, math.inf)):
        if not 0 < value < upper:
            raise InputError(
                f"{name}: must be greater than 0{'' if upper == math.inf else ' and below 1'}, got {value:g}"
            )
    scale = C if version == "paper" else C**2
    return math.ceil(8 * scale * math.log(agents * hypotheses / delta) / (epsilon**2 * gap))
