"""How fast a network forgets where evidence came from: Lemma 1, and the exact mean of the log ratios at any n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.sparse.linalg import splu

from consilience.network import Network
from consilience.theory.centrality import stationary

Which: TypeAlias = Literal["public", "pooled"]
DENSE_AGENTS = 2000
SERIES_TERMS = 3000


class Lemma1(NamedTuple):
    """`sum`: the largest over i of Σ_k Σ_j |W^k_ij − v_j|; `bound`: 4 log N / (1 − lambda_max); `terms`: how many k."""

    sum: float
    bound: float
    terms: int
    converged: bool


def lemma_1(network: Network, v: Float[np.ndarray, "agents"], gap: float, terms: int = 2000) -> Lemma1:
    """Lemma 1's sum over k = 1 … `terms` (fewer once nothing is left to add) against its bound.

    The lemma's bound uses the second eigenvalue alone, and the sum can exceed it, for reversible W too: where evidence
    drifts through N agents, N rounds pass before it is forgotten, whatever the eigenvalues. So look at both numbers.

    >>> from consilience.network import star
    >>> from consilience.theory import lambda_max
    >>> net = star(8, trust=0.5)
    >>> lemma_1(net, stationary(net), 1 - lambda_max(net)).sum < 17.6
    True
    """
    power = np.eye(network.agents)
    sums = np.zeros(network.agents)
    k, converged = 0, False
    while k < terms and not converged:
        k += 1
        power = network.W @ power
        distance = np.abs(power - v).sum(axis=1)
        sums += distance
        converged = bool(distance.max() < 1e-13)
    bound = 4 * np.log(network.agents) / gap if gap > 0 else np.inf
    return Lemma1(float(sums.max()), float(bound), k, converged)


def mean_log_ratio(
    network: Network,
    information: Float[np.ndarray, agents * rest],
    rounds: Sequence[int],
    which: Which = "public",
) -> Float[np.ndarray, "rounds agents *rest"]:
    """The exact mean of log b_i(θ*)/b_i(θ) after n rounds from equal priors, for each n in `rounds`: Σ_k W^k I.

    k runs over 0 … n−1 for the public belief b^(n) (learned, not yet pooled) and over 1 … n for the pooled q^(n), which
    is the one in the paper's recursion. `information` holds I_j, for one or several pairs (θ*, θ).

    >>> from consilience.network import complete
    >>> mean_log_ratio(complete(2), np.array([1.0, 0.0]), rounds=[1, 3]).tolist()
    [[1.0, 0.0], [2.0, 1.0]]
    """
    term = information if which == "public" else network.W @ information
    total, wanted = np.zeros_like(term), {}
    for n in range(1, max(rounds) + 1):
        total = total + term
        term = network.W @ term
        if n in rounds:
            wanted[n] = total
    return np.stack([wanted[n] for n in rounds])


def mean_log_ratio_limit(
    network: Network, information: Float[np.ndarray, agents * rest], rounds: int, which: Which = "public"
) -> Float[np.ndarray, agents * rest]:
    """What `mean_log_ratio` approaches for large n: n·v·I plus a constant head start for the well placed.

    For q^(n) it is n·v·I + (Z − Id)I with the fundamental matrix Z = (Id − W + 1vᵀ)⁻¹; for b^(n), which has one more
    term at k = 0 and one fewer at k = n, it is n·v·I + (Z − 1vᵀ)I.
    """
    v = stationary(network)
    drift = np.tensordot(v, information, axes=1)
    transient = deviation(network, v, information)
    if which == "public":
        transient = transient + information - drift
    return np.asarray(rounds * drift + transient)


def deviation(
    network: Network, v: Float[np.ndarray, "agents"], values: Float[np.ndarray, agents * rest]
) -> Float[np.ndarray, agents * rest]:
    """(Z − Id) x = Σ_{k≥1} (W^k − 1vᵀ) x, with the fundamental matrix Z = (Id − W + 1vᵀ)⁻¹."""
    if network.agents <= DENSE_AGENTS:
        system = np.eye(network.agents) - network.W.toarray() + v
        return np.asarray(np.linalg.solve(system, values) - values)
    centred = values - np.tensordot(v, values, axes=1)
    term, total = centred, np.zeros_like(centred)
    for _ in range(SERIES_TERMS):
        term = network.W @ term
        total = total + term
        if np.abs(term).max() <= 1e-14 * np.abs(centred).max():
            return np.asarray(total)
    # Slow mixing, hence a small factorisation: (Id − W) x = centred with x_0 = 0, moved so that vᵀx = 0.
    system = sp.csc_array(sp.eye_array(network.agents) - network.W)
    x = np.concatenate([np.zeros_like(centred[:1]), splu(system[1:, 1:]).solve(centred[1:])])
    return np.asarray(x - np.tensordot(v, x, axes=1) - centred)
