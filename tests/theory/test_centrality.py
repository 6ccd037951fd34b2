"""v and the second eigenvalue against dense eigenvalues, closed forms and each other."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import InputError
from consilience.network import Network, complete, from_matrix, grid, lazy, path, ring, star, watts_strogatz
from consilience.theory import centrality, is_reversible, lambda_max, stationary


def dense_lambda_max(network: Network) -> float:
    return float(np.sort(np.abs(np.linalg.eigvals(network.W.toarray())))[-2])


def directed_small_world(agents: int, seed: int = 0) -> Network:
    """A ring of self, next and a random shortcut: strongly connected and not reversible."""
    rng = np.random.default_rng(seed)
    each = np.arange(agents)
    heard = np.concatenate([each, (each + 1) % agents, rng.integers(0, agents, agents)])
    weight = np.repeat([0.3, 0.4, 0.3], agents)
    return Network(sp.csr_array((weight, (np.tile(each, 3), heard)), shape=(agents, agents)))


@pytest.mark.parametrize(("trust", "expected"), [(0.1, 0.10), (0.2, 0.18), (0.3, 0.25), (0.5, 0.36), (0.7, 0.44)])
def test_the_paper_centralities_of_the_star(trust, expected):
    assert round(stationary(star(8, trust))[0], 2) == expected


def test_grid_centrality_counts_neighbours():
    network = grid(3, 3)
    size = np.array([len(network.neighbours(i)) for i in range(9)])
    np.testing.assert_allclose(stationary(network), size / size.sum(), rtol=1e-14)


@settings(max_examples=40, deadline=None)
@given(agents=st.integers(2, 25), density=st.floats(0.2, 1), seed=st.integers(0, 10_000))
def test_v_is_stationary_for_any_strongly_connected_w(agents, density, seed):
    rng = np.random.default_rng(seed)
    heard = (rng.uniform(size=(agents, agents)) < density) * rng.uniform(0.01, 1, (agents, agents))
    heard[np.arange(agents), (np.arange(agents) + 1) % agents] += 0.1  # a ring keeps it strongly connected
    network = from_matrix(heard / heard.sum(1, keepdims=True))
    v = stationary(network)
    assert (v > 0).all()
    assert v.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(v @ network.W, v, atol=1e-14)
    assert lambda_max(network) == pytest.approx(dense_lambda_max(network), abs=1e-9)


def test_tiny_entries_keep_their_digits():
    drift = from_matrix([[0.999999, 1e-6, 0], [0.9, 0.0999, 1e-4], [0, 1, 0]])
    one_way = from_matrix([[1 - 1e-9, 1e-9, 0], [0, 0.5, 0.5], [1, 0, 0]])
    for network in (drift, one_way):
        v = stationary(network)
        np.testing.assert_allclose(v @ network.W, v, rtol=1e-12)


def test_periodic_networks_have_a_centrality_too():
    np.testing.assert_allclose(stationary(from_matrix([[0, 1.0], [1.0, 0]])), 0.5)


def test_what_is_not_connected_has_none():
    with pytest.raises(InputError, match="not strongly connected"):
        stationary(from_matrix(np.eye(2)))


def test_reversibility():
    assert is_reversible(star(5, 0.2))
    assert not is_reversible(directed_small_world(30))
    # The same links both ways, but weights that turn one way round the triangle.
    assert not is_reversible(from_matrix([[0.2, 0.6, 0.2], [0.2, 0.2, 0.6], [0.6, 0.2, 0.2]]))


@pytest.mark.parametrize(
    "build", [lambda n: watts_strogatz(n, 6, 0.2), directed_small_world, ring, path, lambda n: ring(n, directed=True)]
)
def test_large_solvers_agree_with_dense_ones(build, monkeypatch):
    network = build(300)
    expected_v, expected = stationary(network), dense_lambda_max(network)
    monkeypatch.setattr(centrality, "DENSE_AGENTS", 10)
    np.testing.assert_allclose(stationary(network), expected_v, rtol=1e-8)
    assert lambda_max(network) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("agents", [2000, 20_000])
def test_slow_rings_have_their_closed_form(agents):
    assert 1 - lambda_max(ring(agents)) == pytest.approx(2 / 3 * (1 - np.cos(2 * np.pi / agents)), rel=1e-4)


def test_small_and_edge_cases():
    assert lambda_max(from_matrix([[1.0]])) == 0
    assert lambda_max(from_matrix([[0.9, 0.1], [0.3, 0.7]])) == pytest.approx(0.6)
    assert lambda_max(complete(7)) == pytest.approx(0, abs=1e-12)
    lazy_path = Network(lazy(path(5).W, 0.5))
    assert lambda_max(lazy_path) == pytest.approx(dense_lambda_max(lazy_path))


def test_networkx_agrees_on_eigenvector_centrality():
    network = directed_small_world(40)
    pagerank = nx.pagerank(
        nx.from_scipy_sparse_array(network.W, create_using=nx.DiGraph), alpha=1 - 1e-12, tol=1e-14, max_iter=10_000
    )
    np.testing.assert_allclose(stationary(network), [pagerank[i] for i in range(40)], atol=1e-9)


def test_a_cluster_of_tiny_mass_is_not_taken_for_reversible():
    """Three agents that turn one way, hearing a fourth that hardly hears them back."""
    W = np.zeros((4, 4))
    W[:3, :3] = np.array([[0.01, 0.98, 0.01], [0.01, 0.01, 0.98], [0.98, 0.01, 0.01]]) * 0.9
    W[:3, 3] = 0.1
    W[3] = [1e-14, 1e-14, 1e-14, 1 - 3e-14]
    network = from_matrix(W)
    assert not is_reversible(network)
    assert lambda_max(network) == pytest.approx(0.9, abs=1e-6)
    np.testing.assert_allclose(stationary(network)[:3], 1e-13, rtol=1e-6)


def test_masses_beyond_the_range_of_numbers():
    """A drifting path: v spans 380 decades, its second eigenvalue is 2√(0.09) cos(π/N)."""
    N, i = 400, np.arange(400)
    W = np.zeros((N, N))
    W[i, np.maximum(i - 1, 0)] += 0.9
    W[i, np.minimum(i + 1, N - 1)] += 0.1
    network = from_matrix(W)
    assert lambda_max(network) == pytest.approx(0.6 * np.cos(np.pi / N), abs=1e-12)
    assert stationary(network)[0] == pytest.approx(8 / 9)


@pytest.mark.parametrize("links", [1e-6, 1e-10])
def test_nearly_separate_blocks(links, monkeypatch):
    """Two one-way blocks that hardly hear each other: their masses are as 3 to 1."""
    blocks = [directed_small_world(80, seed).W.toarray() for seed in (0, 1)]
    W = np.zeros((160, 160))
    W[:80, :80], W[80:, 80:] = blocks
    for row, other, weight in ((0, 80, links), (80, 0, 3 * links)):
        W[row] *= 1 - weight
        W[row, other] += weight
    network = from_matrix(W / W.sum(1, keepdims=True))
    exact = stationary(network)
    monkeypatch.setattr(centrality, "DENSE_AGENTS", 10)
    np.testing.assert_allclose(stationary(network), exact, rtol=1e-3)


def test_eigenvalues_near_minus_one():
    """A long odd ring that hardly hears itself nearly alternates."""
    N = 2001
    i = np.arange(N)
    W = sp.csr_array(
        (np.full(2 * N, 0.5 * (1 - 1e-9)), (np.tile(i, 2), np.concatenate([(i + 1) % N, (i - 1) % N]))), (N, N)
    )
    network = Network(W + 1e-9 * sp.eye_array(N))
    assert 1 - lambda_max(network) == pytest.approx(1 - np.cos(np.pi / N), rel=1e-2)
