"""Networks: their shapes, their weights, their checks, their ways in and out."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import InputError
from consilience.network import (
    Network,
    check,
    complete,
    components,
    erdos_renyi,
    from_matrix,
    from_networkx,
    grid,
    lazy,
    metropolis,
    path,
    period,
    ring,
    star,
    uniform,
    watts_strogatz,
)

USUAL = [
    star(8, 0.3),
    grid(3, 4),
    ring(7),
    ring(7, directed=True),
    complete(5),
    path(6),
    erdos_renyi(20, 0.3, seed=1),
    watts_strogatz(20, 4, 0.2, seed=1),
    grid(3, 3, weights="metropolis"),
]


@pytest.mark.parametrize("network", USUAL, ids=lambda n: n.name)
def test_the_usual_networks_satisfy_assumption_1(network):
    check(network)
    assert (network.W.diagonal() > 0).all(), "every agent hears itself"


def test_the_paper_star():
    W = star(8, 0.1).W.toarray()
    np.testing.assert_allclose(W[0], 1 / 9)
    np.testing.assert_allclose(W[3], [0.1, 0, 0, 0.9, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (grid(3, 4), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))),
        (ring(6), nx.cycle_graph(6)),
        (path(5), nx.path_graph(5)),
        (complete(4), nx.complete_graph(4)),
    ],
    ids=["grid", "ring", "path", "complete"],
)
def test_shapes_agree_with_networkx(ours, theirs):
    links = (ours.W.toarray() > 0) & ~np.eye(ours.agents, dtype=bool)
    np.testing.assert_array_equal(links, nx.to_numpy_array(theirs, nodelist=range(ours.agents)) > 0)


@pytest.mark.parametrize("agents", [1, 2, 3])
@pytest.mark.parametrize("build", [ring, path, complete, lambda n: star(n), lambda n: grid(n, 1)])
def test_the_smallest_networks(build, agents):
    check(build(agents))


@settings(max_examples=40, deadline=None)
@given(agents=st.integers(2, 30), probability=st.floats(0.05, 1), seed=st.integers(0, 1000))
def test_weight_rules_are_row_stochastic_and_keep_the_graph(agents, probability, seed):
    links = nx.to_scipy_sparse_array(nx.gnp_random_graph(agents, probability, seed=seed), dtype=float, format="csr")
    for W in (uniform(links), metropolis(links), lazy(uniform(links), 0.3)):
        np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-12)
        assert W.min() >= 0
        np.testing.assert_array_equal(
            (W.toarray() > 0) | np.eye(agents, dtype=bool), (links.toarray() > 0) | np.eye(agents, dtype=bool)
        )
    symmetric = metropolis(links)
    assert abs(symmetric - symmetric.T).max() < 1e-15


def test_metropolis_refuses_one_way_links():
    with pytest.raises(InputError, match="metropolis needs an undirected graph"):
        metropolis(sp.csr_array([[0, 1], [0, 0]]))


def test_networkx_round_trip():
    network = from_matrix([[0.5, 0.5, 0], [0, 0.2, 0.8], [0.4, 0, 0.6]])
    graph = network.to_networkx()
    assert graph.edges[1, 0]["weight"] == 0.5, "information flows from the heard to the hearer"
    np.testing.assert_allclose(from_networkx(graph).W.toarray(), network.W.toarray())


def test_networkx_names_are_kept():
    graph = nx.Graph([("ada", "bob"), ("bob", "cyn")])
    network = from_networkx(graph)
    assert network.names == ("ada", "bob", "cyn")
    assert set(network.to_networkx()) == {"ada", "bob", "cyn"}


def test_half_weighted_graphs_are_refused():
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=0.5)
    graph.add_edge(1, 2)
    with pytest.raises(InputError, match="either every edge has a 'weight' or none"):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [0.2, 0.7]], r"W: row 1 sums to 0\.9, not 1$"),
        ([[0.5, 0.4], [0.2, 0.7]], r"row 0 sums to 0\.9, not 1 \(and 1 more rows"),
        ([[1.5, -0.5], [0.5, 0.5]], r"row 0, column 1 must be at least 0, got -0\.5"),
        ([[0.5, 0.5], [float("nan"), 0.5]], r"row 1, column 0 must be finite, got nan"),
        ([[1.0, 0.0], [0.5, 0.5]], r"not strongly connected, it has 2 components: \{0\}; \{1\}"),
        ([[0.0, 1.0], [1.0, 0.0]], r"periodic with period 2"),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], r"periodic with period 3"),
    ],
)
def test_broken_assumptions_are_named(rows, message):
    with pytest.raises(InputError, match=message):
        check(from_matrix(rows))


@pytest.mark.parametrize(
    "rows", [[[1.0, 0.0]], [1.0], [], [[1, 2], [3]], [["a", "b"], ["c", "d"]], [[1j]], [[None, {}]]]
)
def test_what_is_not_a_square_matrix_is_refused(rows):
    with pytest.raises(InputError, match="W: must be a square matrix"):
        from_matrix(rows)


@settings(max_examples=60, deadline=None)
@given(agents=st.integers(2, 8), probability=st.floats(0.1, 0.6), seed=st.integers(0, 10_000))
def test_period_and_components_agree_with_networkx(agents, probability, seed):
    graph = nx.gnp_random_graph(agents, probability, seed=seed, directed=True)
    heard = nx.to_numpy_array(graph)
    network = Network(heard)
    expected = sorted(sorted(part) for part in nx.strongly_connected_components(graph))
    assert sorted(components(network)) == expected
    if len(expected) == 1:
        assert (period(network) == 1) == nx.is_aperiodic(graph)


@pytest.mark.parametrize("build", [lambda: ring(100_000), lambda: watts_strogatz(100_000, 6, 0.1)])
def test_a_hundred_thousand_agents_are_never_dense(build, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("made a dense array")

    for kind in (sp.csr_array, sp.coo_array, sp.csc_array):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    network = build()
    check(network)
    assert network.agents == 100_000
    assert network.edges < 1_000_000
