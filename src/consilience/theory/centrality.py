"""The stationary distribution v of W (eigenvector centrality) and its second eigenvalue, for any size of network.

Three facts keep this fast. A reversible W (every undirected graph under the usual weight rules) has v by detailed
balance along a spanning tree, and a symmetric twin with the same spectrum. A network that mixes fast suits iterative
solvers, and it can be bounded how far off they are. One that mixes slowly is easily cut in two, so that elimination
(`elimination`) or a sparse factorisation stays small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Float
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs, eigsh, gmres
from threadpoolctl import threadpool_limits

from consilience.errors import InputError
from consilience.network import Network
from consilience.network.checks import check_connected, check_rows
from consilience.streams import stream
from consilience.theory.elimination import eliminate

DENSE_AGENTS = 600  # up to here dense eigenvalues take a fraction of a second and need no care
DENSE_AT_MOST = 4000  # … and up to here they take a minute, when nothing else has worked
ITERATIONS = 60  # restarts of an Arnoldi or Lanczos process; what needs more mixes slowly and is factorised instead
BASIS = 40  # vectors it keeps
POWERS = 10_000  # of W, at most, until entries of v do not change any more
STRIDE = 40  # powers between two looks at that
EXACT = 1e-14  # the relative change that is no more than rounding
RESTARTS = 5  # of the solver that bounds their error
TOLERANCE = 1e-9  # of that bound; what is returned is far better


def stationary(network: Network) -> Float[np.ndarray, "agents"]:
    """The distribution v with vW = v: how much each agent's evidence counts in the end. W must be irreducible.

    Every entry is right to nearly all its digits, however small; where that cannot be had, it is said.

    >>> from consilience.network import star
    >>> stationary(star(8, trust=0.5)).round(2).tolist()[:2]
    [0.36, 0.08]
    """
    check_rows(network)
    check_connected(network)
    log_v = _log_balance(network, tolerance=1e-12)
    if log_v is not None:
        v = np.exp(log_v)
        return np.asarray(v / v.sum())
    if network.agents > DENSE_AGENTS:
        with _one_thread():
            v = _by_iteration(network)
        if v is not None:
            return v
    eliminated = eliminate(network.W)
    if eliminated is None:
        raise InputError(f"network: v of {network.name} ({network.agents:,} agents) was not found to all its digits")
    return eliminated.stationary()


def is_reversible(network: Network) -> bool:
    """Whether v_i W_ij = v_j W_ji for every pair: then influence flows both ways alike and the spectrum is real.

    >>> from consilience.network import ring
    >>> is_reversible(ring(5)), is_reversible(ring(5, directed=True))
    (True, False)
    """
    return _log_balance(network) is not None


def lambda_max(network: Network, v: Float[np.ndarray, "agents"] | None = None) -> float:
    """The largest modulus among the eigenvalues of W other than 1; the gap is 1 − lambda_max.

    For W that is far from normal (evidence that flows one way through many agents) eigenvalues are ill-conditioned, and
    say little about mixing: look at Lemma 1's sum instead. Its error is about 1e-15, so that a gap of 1e-12 has three
    digits and one of 1e-16 none.

    >>> from consilience.network import complete, ring
    >>> round(lambda_max(complete(5)), 12)
    0.0
    >>> round(lambda_max(ring(4)), 12)
    0.333333333333
    """
    if network.agents <= 2:
        return float(abs(network.W.trace() - 1)) if network.agents == 2 else 0.0
    with _one_thread():
        log_v = _log_balance(network)
        if log_v is not None:
            return _symmetric_lambda_max(network, log_v)
        if network.agents <= DENSE_AGENTS:
            return _dense_lambda_max(network)
        return _general_lambda_max(network, stationary(network) if v is None else v)


def _log_balance(network: Network, tolerance: float = 1e-9) -> Float[np.ndarray, "agents"] | None:
    """log v of a reversible W up to a constant, or None: v_j = v_i W_ij / W_ji along a tree, checked on every edge.

    In logarithms, because agents of very small mass count as much in the check as the others. Weights rounded to nine
    digits still count as reversible, unless v itself is wanted.
    """
    W = network.W
    back = sp.csr_array(W.T)
    if not (np.array_equal(W.indptr, back.indptr) and np.array_equal(W.indices, back.indices)):
        return None
    order, parent = breadth_first_order(W, 0)
    if len(order) < network.agents:
        return None
    child = order[1:]
    above = parent[child]
    # The same pattern both ways: entry e of W is W_ij where entry e of its transpose is W_ji.
    rows = np.repeat(np.arange(network.agents), np.diff(W.indptr))
    edge = np.searchsorted(rows * network.agents + W.indices, above.astype(np.int64) * network.agents + child)
    step = np.log(W.data) - np.log(back.data)
    log_v = np.zeros(network.agents)
    for i, j, log_ratio in zip(above.tolist(), child.tolist(), step[edge].tolist(), strict=True):
        log_v[j] = log_v[i] + log_ratio
    mismatch = np.abs(log_v[rows] + step - log_v[W.indices]).max()
    return log_v - log_v.max() if mismatch <= tolerance * max(1.0, float(np.abs(log_v).max())) else None


def _by_iteration(network: Network) -> Float[np.ndarray, "agents"] | None:
    """1W^k for large k, or None where the network mixes slowly, or entries are not sure to be exact.

    Sums of positive numbers lose no digits: what is small is exact as soon as what it comes from is.
    """
    back = sp.csr_array((sp.diags_array(1 / network.W.sum(axis=1)) @ network.W).T)  # rows may be off 1 by 1e-8
    v, change = np.full(network.agents, 1 / network.agents), np.inf
    for powers in range(STRIDE, POWERS + 1, STRIDE):
        for _ in range(STRIDE):
            before, v = v, back @ v
        v /= v.sum()
        if not (v > 0).all():
            return None
        last, change = change, float(np.abs(before / v - 1).max())
        if change < EXACT:
            return v if _relative_error(back, v) < TOLERANCE else None
        to_come = np.log(change / EXACT) / np.log(last / change) * STRIDE if change < last else np.inf
        if powers + to_come > POWERS and np.isfinite(last):
            return None
    return None


def _relative_error(back: Any, v: Float[np.ndarray, "agents"]) -> float:
    """A bound on the relative error of every entry of v, with the transpose of W.

    With P_ij = v_j W_ji / v_i and the true t_i v_i, t = P t. Say t_a = 1 for the largest entry a; then t − 1 solves
    (Id − P)x = P1 − 1 without row and column a, and |x| ≤ max |P1 − 1| · h, where (Id − P)h = 1, which is how long
    evidence takes to come to a. Any positive g with (Id − P)g ≥ c is at least c·h.
    """
    largest, rows = int(np.argmax(v)), np.repeat(np.arange(len(v)), np.diff(back.indptr))
    P = sp.csr_array((back.data * v[back.indices] / v[rows], back.indices, back.indptr), shape=back.shape)
    off = np.abs(P.sum(axis=1) - 1).max() + (2 + np.diff(back.indptr).max()) * np.finfo(float).eps
    P.data[(rows == largest) | (P.indices == largest)] = 0
    system = LinearOperator(P.shape, matvec=lambda x: x - P @ x, dtype=np.float64)
    g, _ = gmres(system, np.ones(len(v)), rtol=0.1 / len(v) ** 0.5, restart=BASIS, maxiter=RESTARTS)
    c = (g - P @ g).min()
    return float(2 * off * g.max() / c) if g.min() > 0 and c > 0 else np.inf


def _symmetric_lambda_max(network: Network, log_v: Float[np.ndarray, "agents"]) -> float:
    """From the symmetric twin √(W_ij W_ji), which has the spectrum of W, its leading eigenvector √v removed."""
    W, back = network.W, sp.csr_array(network.W.T)
    twin = sp.csr_array((np.sqrt(W.data * back.data), W.indices, W.indptr), shape=W.shape)
    root = np.exp(log_v / 2)
    root /= np.linalg.norm(root)
    if network.agents <= DENSE_AGENTS:
        return float(np.abs(scipy.linalg.eigvalsh(twin.toarray() - np.outer(root, root))).max())
    deflated = LinearOperator(twin.shape, matvec=lambda x: twin @ x - root * (root @ x), dtype=np.float64)
    start = _start(network.agents)
    try:
        found = eigsh(deflated, k=1, ncv=BASIS, which="LM", v0=start, maxiter=ITERATIONS, tol=1e-10)[0]
        return float(np.abs(found).max())
    except ArpackError:
        pass
    try:
        # Slow mixing: eigenvalues crowd near 1, or near −1. Look there by factorising just outside.
        second = float(eigsh(twin, k=2, sigma=1 + 1e-9, v0=start, return_eigenvectors=False).min())
        if 2 * float(network.W.diagonal().min()) - 1 >= -second:  # Gershgorin: no eigenvalue lies below this
            return second
        lowest = float(eigsh(twin, k=1, sigma=-1 - 1e-9, v0=start, return_eigenvectors=False, maxiter=ITERATIONS)[0])
        return max(second, -lowest)
    except ArpackError:
        raise _not_computed(network) from None


def _general_lambda_max(network: Network, v: Float[np.ndarray, "agents"]) -> float:
    deflated = LinearOperator(network.W.shape, matvec=lambda x: network.W @ x - (v @ x), dtype=np.float64)
    start = _start(network.agents)
    try:
        # Several at once: eigenvalues of nearly the same modulus come in pairs and crowds, and one alone may be missed.
        return float(np.abs(eigs(deflated, k=8, ncv=BASIS, which="LM", v0=start, maxiter=ITERATIONS)[0]).max())
    except ArpackError:
        if network.agents > DENSE_AT_MOST:  # slow, and eigenvalues may lie anywhere near the circle
            raise _not_computed(network) from None
        return _dense_lambda_max(network)


def _dense_lambda_max(network: Network) -> float:
    return float(min(np.sort(np.abs(np.linalg.eigvals(network.W.toarray())))[-2], 1.0))


def _not_computed(network: Network) -> InputError:
    return InputError(f"network: the second eigenvalue of {network.name} ({network.agents:,} agents) was not found")


def _one_thread() -> threadpool_limits:
    """Thousands of small BLAS calls: threads only wait for one another, several times slower on a busy machine."""
    return threadpool_limits(limits=1, user_api="blas")


def _start(agents: int) -> Float[np.ndarray, "agents"]:
    """A fixed start vector, so that the same network always gives the same digits."""
    return stream("start vector", seed=0).uniform(0.5, 1.5, agents)
