"""The stationary distribution v of W (eigenvector centrality) and its second eigenvalue, for any size of network.

Three facts keep this fast. A reversible W (every undirected graph under the usual weight rules) has v by detailed
balance along a spanning tree, and a symmetric twin with the same spectrum. A network that mixes fast suits iterative
solvers. One that mixes slowly is easily cut in two, so its sparse factorisation stays small.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Float
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs, eigsh, splu
from threadpoolctl import threadpool_limits

from consilience.errors import InputError
from consilience.network import Network
from consilience.network.checks import check_connected, check_rows

DENSE_AGENTS = 600  # up to here dense eigenvalues take a fraction of a second and need no care
DENSE_AT_MOST = 4000  # … and up to here they take a minute, when nothing else has worked
ITERATIONS = 60  # restarts of an Arnoldi or Lanczos process; what needs more mixes slowly and is factorised instead
BASIS = 40  # vectors it keeps


def stationary(network: Network) -> Float[np.ndarray, "agents"]:
    """The distribution v with vW = v: how much each agent's evidence counts in the end. W must be irreducible.

    >>> from consilience.network import star
    >>> stationary(star(8, trust=0.5)).round(2).tolist()[:2]
    [0.36, 0.08]
    """
    check_rows(network)
    check_connected(network)
    log_v = _log_balance(network)
    if log_v is not None:
        v = np.exp(log_v)
        return np.asarray(v / v.sum())
    if network.agents <= DENSE_AGENTS:
        return _by_elimination(network.W.toarray())
    with _one_thread():
        v = _by_iteration(network)
    return v if v is not None else _by_factorisation(network)


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
    say little about mixing: look at Lemma 1's sum instead.

    >>> from consilience.network import complete, ring
    >>> round(lambda_max(complete(5)), 12)
    0.0
    >>> round(lambda_max(ring(4)), 12)
    0.333333333333
    """
    v = stationary(network) if v is None else v
    if network.agents <= 2:
        return float(abs(network.W.trace() - 1)) if network.agents == 2 else 0.0
    with _one_thread():
        log_v = _log_balance(network)
        if log_v is not None:
            return _symmetric_lambda_max(network, log_v)
        if network.agents <= DENSE_AGENTS:
            return _dense_lambda_max(network)
        return _general_lambda_max(network, v)


def _log_balance(network: Network) -> Float[np.ndarray, "agents"] | None:
    """log v of a reversible W up to a constant, or None: v_j = v_i W_ij / W_ji along a tree, checked on every edge.

    In logarithms, because agents of very small mass count as much in the check as the others.
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
    return log_v - log_v.max() if mismatch <= 1e-9 * max(1.0, float(np.abs(log_v).max())) else None


def _by_elimination(W: Float[np.ndarray, "agents agents"]) -> Float[np.ndarray, "agents"]:
    """Grassmann, Taksar and Heyman's elimination: no subtraction, so even tiny entries of v keep all their digits."""
    A = W.copy()
    N = len(A)
    for k in range(N - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    v = np.ones(N)
    for k in range(1, N):
        v[k] = v[:k] @ A[:k, k]
    return np.asarray(v / v.sum())


def _by_iteration(network: Network) -> Float[np.ndarray, "agents"] | None:
    """The leading left eigenvector by Arnoldi, or None where it is not accurate: its error is residual over gap."""
    try:
        values, vectors = eigs(
            sp.csr_array(network.W.T), k=2, ncv=BASIS, which="LM", v0=_start(network.agents), maxiter=ITERATIONS
        )
    except ArpackError:
        return None
    first = int(np.argmax(values.real))
    gap = 1 - float(np.abs(values[1 - first]))
    v = np.abs(vectors[:, first].real)
    v /= v.sum()
    return v if np.abs(v @ network.W - v).sum() < 1e-8 * gap else None


def _by_factorisation(network: Network) -> Float[np.ndarray, "agents"]:
    """Solve (I − Wᵀ)v = 0 with the first entry of v fixed: what is left is a nonsingular M-matrix.

    Its diagonal is summed from the weights on others, which loses no digits where 1 − W_ii would.
    """
    others = network.W - sp.diags_array(network.W.diagonal())
    system = sp.csc_array(sp.diags_array(others.sum(axis=1)) - others.T)
    rest = splu(system[1:, 1:]).solve(-system[1:, [0]].toarray()[:, 0])
    v = np.concatenate([[1.0], rest])
    return np.asarray(v / v.sum())


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
    return np.random.default_rng(0).uniform(0.5, 1.5, agents)
