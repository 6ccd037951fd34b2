"""Elimination without subtraction, against exact fractions and against more digits, on difficult networks."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consilience.errors import InputError
from consilience.network import Network, from_matrix
from consilience.theory import centrality, deviation, elimination, stationary
from consilience.theory.elimination import eliminate


def small_world(agents: int, seed: int = 0) -> np.ndarray:
    """A one-way ring with a shortcut for everybody."""
    each = np.arange(agents)
    W = 0.3 * np.eye(agents)
    W[each, (each + 1) % agents] += 0.4
    np.add.at(W, (each, np.random.default_rng(seed).integers(0, agents, agents)), 0.3)
    return W


def one_way_ring(agents: int) -> np.ndarray:
    """Some hardly hear themselves, some hardly anybody else."""
    each, own = np.arange(agents), np.random.default_rng(1).uniform(size=agents) ** 4 * 0.999
    W = np.diag(own)
    W[each, (each + 1) % agents] = 1 - own
    return W


def blocks(agents: int, links: float) -> np.ndarray:
    """Four small worlds that hardly hear each other."""
    size = agents // 4
    W = scipy.linalg.block_diag(*(small_world(size, seed) for seed in range(3)), small_world(agents - 3 * size, 3))
    for block in range(4):
        W[block * size] *= 1 - links * (1 + block)
        W[block * size, (block + 1) % 4 * size + 1] += links * (1 + block)
    return W


def drift(agents: int, forward: float, seed: int = 0) -> np.ndarray:
    """Evidence drifts down a path whose agents also hear, a little, the one after the next."""
    i, W = np.arange(agents), np.zeros((agents, agents))
    W[i, np.maximum(i - 1, 0)] += forward
    W[i, np.minimum(i + 1, agents - 1)] += 0.999 - forward
    W[i, np.minimum(i + 2, agents - 1)] += 0.001
    return W


def tiny_weights(agents: int) -> np.ndarray:
    """A small world whose weights span twelve decades."""
    W = small_world(agents)
    W = W * 10.0 ** -np.random.default_rng(2).integers(0, 13, W.shape)
    return W / W.sum(1, keepdims=True)


NASTY = {
    "one-way ring": one_way_ring,
    "blocks 1e-6": lambda n: blocks(n, 1e-6),
    "blocks 1e-12": lambda n: blocks(n, 1e-12),
    "blocks 1e-15": lambda n: blocks(n, 1e-15),
    "drift": lambda n: drift(n, 0.7),
    "tiny weights": tiny_weights,
}


def with_more_digits(W: np.ndarray) -> np.ndarray:
    """The textbook's elimination, one by one, in long doubles where there are any."""
    A = W.astype(np.longdouble)
    for k in range(len(A) - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        hear, heard = np.flatnonzero(A[:k, k]), np.flatnonzero(A[k, :k])
        A[np.ix_(hear, heard)] += np.outer(A[hear, k], A[k, heard])
    v = np.ones(len(A), np.longdouble)
    for k in range(1, len(A)):
        v[k] = v[:k] @ A[:k, k]
    return v / v.sum()


@pytest.mark.parametrize("build", NASTY.values(), ids=NASTY)
def test_every_entry_is_right_however_small(build):
    W = build(650)
    v = stationary(from_matrix(W))
    assert (v > 0).all()
    np.testing.assert_allclose((v / with_more_digits(W)).astype(float), 1, rtol=1e-12)


def exact_stationary(W: np.ndarray) -> list[Fraction]:
    """v from the weights on others, in fractions."""
    A = [[Fraction(x) for x in row] for row in W.tolist()]
    for k in range(len(A) - 1, 0, -1):
        leaving = sum(A[k][:k])
        for i in range(k):
            A[i][k] /= leaving
            for j in range(k):
                A[i][j] += A[i][k] * A[k][j]
    v = [Fraction(1)]
    for k in range(1, len(A)):
        v.append(sum(v[i] * A[i][k] for i in range(k)))
    return [x / sum(v) for x in v]


def exact_deviation(W: np.ndarray, values: list[float]) -> list[Fraction]:
    """(Z − Id)x in fractions, the diagonal being what the weights on others leave of 1."""
    n, v = len(W), exact_stationary(W)
    A = [[Fraction(-x) for x in row] for row in W.tolist()]
    for i in range(n):
        A[i][i] = -sum(A[i][j] for j in range(n) if j != i)
    mean = sum(p * Fraction(x) for p, x in zip(v, values, strict=True))
    centred = [Fraction(x) - mean for x in values]
    rows = [[a + p for a, p in zip(row, v, strict=True)] + [c] for row, c in zip(A, centred, strict=True)]
    for k in range(n):  # Gauss and Jordan
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] - c for row, c in zip(rows, centred, strict=True)]


def any_network(seed: int, agents: int) -> np.ndarray:
    """A ring and some more links, with weights over twelve decades."""
    rng = np.random.default_rng(seed)
    W = (rng.random((agents, agents)) < 0.3) * 10.0 ** rng.uniform(-12, 0, (agents, agents))
    W[np.arange(agents), (np.arange(agents) + 1) % agents] += 10.0 ** rng.uniform(-12, 0, agents)
    return W / W.sum(1, keepdims=True)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), agents=st.integers(2, 14), small=st.sampled_from([1, 4, 600]), block=st.integers(1, 5)
)
def test_elimination_against_fractions(seed, agents, small, block):
    """Level by level as in large networks, or one by one; any agent may be the one that is left."""
    W = any_network(seed, agents)
    exact = np.array([float(x) for x in exact_stationary(W)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "SMALL", small)
        patch.setattr(elimination, "BLOCK", block)
        v = eliminate(sp.csr_array(W), last=seed % agents).stationary()
    np.testing.assert_allclose(v, exact, rtol=1e-13)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), agents=st.integers(2, 9), small=st.sampled_from([1, 4, 600]))
@example(seed=436, agents=2, small=1)
def test_deviation_against_fractions(seed, agents, small):
    """To digits that a factorisation of Id − W + 1vᵀ has lost where evidence needs 10^12 rounds; or it is said."""
    W = any_network(seed, agents)
    values = np.random.default_rng(seed).uniform(0, 2, agents)
    exact = np.array([float(x) for x in exact_deviation(W, values.tolist())])
    network = from_matrix(W)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "SMALL", small)
        try:
            found = deviation(network, stationary(network), values)
        except InputError:
            return
    # Where one round mixes nearly everything, what is left is below what rounding leaves of the values themselves.
    atol = 1e-6 * np.abs(exact).max() + 8 * np.finfo(float).eps * np.abs(values).max()
    np.testing.assert_allclose(found, exact, atol=atol)


@pytest.mark.parametrize("agents", [601, 2000])
def test_fast_mixing_networks_are_iterated_within_the_bound(agents):
    network = from_matrix(small_world(agents))
    v, exact = centrality._by_iteration(network), eliminate(network.W).stationary()
    bound = centrality._relative_error(sp.csr_array(network.W.T), v)
    assert np.abs(v / exact - 1).max() < min(bound, 1e-12)
    worse = v * np.random.default_rng(0).uniform(1 - 1e-6, 1 + 1e-6, agents)
    assert centrality._relative_error(sp.csr_array(network.W.T), worse / worse.sum()) > 1e-6


def test_rows_that_sum_to_nearly_1():
    W = small_world(700) * np.random.default_rng(0).uniform(1 - 1e-9, 1 + 1e-9, (700, 1))
    np.testing.assert_allclose(stationary(from_matrix(W)), stationary(from_matrix(small_world(700))), rtol=1e-7)


def test_nearly_reversible_networks_keep_their_digits():
    """Weights a little off detailed balance, all in the same sense round a ring, and a drift to make v span decades."""
    n = 650
    i = np.arange(n)
    W = np.zeros((n, n))
    W[i, (i - 1) % n] = np.where(i < n // 2, 0.6, 0.4) * (1 + 1e-11)
    W[i, (i + 1) % n] = 1 - W[i, (i - 1) % n]
    np.testing.assert_allclose((stationary(from_matrix(W)) / with_more_digits(W)).astype(float), 1, rtol=1e-12)


@pytest.mark.parametrize("agents", [500, 900])
def test_masses_beyond_the_range_of_numbers_are_told(agents):
    with pytest.raises(InputError, match="beyond the range of numbers"):
        stationary(from_matrix(drift(agents, 0.9)))


def test_too_many_links_among_too_many_are_told(monkeypatch):
    monkeypatch.setattr(centrality, "POWERS", 0)
    monkeypatch.setattr(elimination, "SMALL", 100)
    monkeypatch.setattr(elimination, "CORE", 100)
    with pytest.raises(InputError, match=r"v of matrix \(900 agents\) was not found"):
        stationary(from_matrix(small_world(900)))


def test_a_large_network_that_hardly_mixes():
    """A one-way ring of 20,000 has v in proportion to how long each keeps what it has."""
    own = np.random.default_rng(1).uniform(size=20_000) ** 4 * 0.999
    i = np.arange(20_000)
    W = sp.csr_array((np.concatenate([own, 1 - own]), (np.tile(i, 2), np.concatenate([i, (i + 1) % 20_000]))))
    v = 1 / (1 - own)
    np.testing.assert_allclose(stationary(Network(W)), v / v.sum(), rtol=1e-12)
