"""How fast a network forgets where evidence came from: Lemma 1, and the exact mean of the log ratios at any n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from consilience.errors import InputError
from consilience.network import Network
from consilience.theory.centrality import stationary
from consilience.theory.elimination import eliminate

Which: TypeAlias = Literal["public", "pooled"]
DENSE_AGENTS = 2000
SERIES_TERMS = 3000
DIGITS = 1e-6  # what may be lost in rounding, relative to the result


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
    information: Float[np.ndarray, "agents *rest"],
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
    flat = _columns(information)
    term = flat if which == "public" else network.W @ flat
    total, wanted = np.zeros_like(term), {}
    for n in range(1, max(rounds) + 1):
        total = total + term
        term = network.W @ term
        if n in rounds:
            wanted[n] = total
    return np.stack([wanted[n].reshape(information.shape) for n in rounds])


def mean_log_ratio_limit(
    network: Network, information: Float[np.ndarray, "agents *rest"], rounds: int, which: Which = "public"
) -> Float[np.ndarray, "agents *rest"]:
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
    network: Network, v: Float[np.ndarray, "agents"], values: Float[np.ndarray, "agents *rest"]
) -> Float[np.ndarray, "agents *rest"]:
    """(Z − Id) x = Σ_{k≥1} (W^k − 1vᵀ) x, with the fundamental matrix Z = (Id − W + 1vᵀ)⁻¹."""
    flat = _columns(values)
    centred = flat - v @ flat
    total = None if network.agents <= DENSE_AGENTS else _series(network, centred)
    return np.asarray((_by_elimination(network, v, flat) if total is None else total).reshape(values.shape))


def _columns(values: Float[np.ndarray, "agents *rest"]) -> Float[np.ndarray, "agents columns"]:
    """Everything an agent has in one row: products take further axes for stacks of matrices."""
    return values.reshape(len(values), -1)


def _series(
    network: Network, centred: Float[np.ndarray, "agents columns"]
) -> Float[np.ndarray, "agents columns"] | None:
    """The sum term by term; None where too many terms are needed."""
    term, total = centred, np.zeros_like(centred)
    for _ in range(SERIES_TERMS):
        term = network.W @ term
        total = total + term
        if np.abs(term).max(initial=0) <= 1e-14 * np.abs(centred).max(initial=0):
            return np.asarray(total)
    return None


def _by_elimination(
    network: Network, v: Float[np.ndarray, "agents"], values: Float[np.ndarray, "agents columns"]
) -> Float[np.ndarray, "agents columns"]:
    """y − x with (Id − W)y = x and vᵀy = 0, for centred x.

    Evidence takes (Id − W)⁻¹1 rounds to come to the agent that counts most, and what is lost in rounding counts as
    often.
    """
    eliminated = eliminate(network.W, last=int(np.argmax(v)))
    if eliminated is None:
        raise InputError(f"network: {network.name} ({network.agents:,} agents) mixes too slowly to sum its series")
    centred = values - v @ values
    found = eliminated.solve(np.concatenate([centred, np.ones((network.agents, 1))], axis=1))
    y, rounds = found[:, :-1], float(found[:, -1].max())
    lost = np.finfo(float).eps * rounds * np.abs(values).max(axis=0, initial=0)
    if not (lost <= DIGITS * np.maximum(np.abs(y), np.abs(values)).max(axis=0, initial=0)).all():
        raise InputError(f"network: {network.name} mixes in {rounds:.0e} rounds, too slowly for any digits of this sum")
    return np.asarray(y - v @ y - centred)
