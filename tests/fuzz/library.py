"""Odd arrays handed to the library: refused by InputError in one line, or an answer that makes sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from consilience.data import partition
from consilience.errors import InputError
from consilience.network import check, from_matrix, from_networkx
from consilience.theory import finite_information, is_reversible, lambda_max, lemma_1, rate, stationary

from .wild import FLOATS, INTEGERS, Rng, chance, pick


def use(rng: Rng) -> tuple[Callable[[], Any], str]:
    """One use of the library, and how to read it."""
    return pick(rng, (_matrix, _matrix, _graph, _partition, _likelihoods))(rng)


def _refusable(f: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> None:
        try:
            f()
        except InputError as error:
            text = str(error)
            assert text, "an InputError says nothing"
            assert text.isprintable(), f"an InputError of several lines: {text!r}"

    return call


def _matrix(rng: Rng) -> tuple[Callable[[], Any], str]:
    from .tables import stochastic

    size = int(pick(rng, (0, 1, 2, 3, 4)))
    W: Any = stochastic(rng, size)
    if chance(rng, 0.5) and size:
        W[rng.integers(size), rng.integers(size)] = pick(rng, FLOATS)
    kinds = ("f8", "f4", "f2", "i8", "u1", "?", "c16", "longdouble", "O")
    with np.errstate(all="ignore"):
        W = W if chance(rng, 0.5) else np.nan_to_num(W).astype(pick(rng, kinds))
    how = rng.integers(6)
    if how == 0:
        W = W.tolist()
    elif how == 1:
        W = pick(rng, (W[None], W[:1], W[:, :1], W.ravel(), np.float64(1.0), [], [[]], [[1.0], [0.5, 0.5]]))
    elif how == 2 and getattr(W, "dtype", np.dtype("O")).kind in "fiub" and W.dtype.itemsize in (1, 4, 8):
        W = pick(rng, (sp.csr_array, sp.coo_array, sp.csc_matrix))(W)

    def look() -> None:
        network = from_matrix(W)
        check(network)
        v = stationary(network)
        assert np.isfinite(v).all(), f"v is {v}"
        assert abs(v.sum() - 1) < 1e-9, f"v sums to {v.sum()}"
        second = lambda_max(network, v)
        assert 0 <= second <= 1 + 1e-9, f"lambda_max is {second}"
        is_reversible(network)
        lemma_1(network, v, 1 - second, 50)

    return _refusable(look), f"from_matrix({W!r})"


def _graph(rng: Rng) -> tuple[Callable[[], Any], str]:
    size = int(pick(rng, (0, 1, 2, 4, 6)))
    seed = int(rng.integers(100))
    graph = nx.gnp_random_graph(size, 0.6, seed=seed, directed=chance(rng, 0.4))
    if chance(rng, 0.3):
        graph = pick(rng, (nx.MultiGraph, nx.MultiDiGraph))(graph)
    for edge in graph.edges:
        if chance(rng, 0.5):
            graph.edges[edge]["weight"] = pick(rng, (1, 2.0, 0.5, *FLOATS, "1", None))
    weight = pick(rng, (None, "weight", "nothing"))

    def look() -> None:
        network = from_networkx(graph, weight=weight)
        check(network)
        v = stationary(network)
        assert abs(v.sum() - 1) < 1e-9, f"v sums to {v.sum()}"

    return _refusable(look), f"from_networkx({type(graph).__name__} {list(graph.edges(data=True))}, weight={weight!r})"


def _partition(rng: Rng) -> tuple[Callable[[], Any], str]:
    examples, agents = int(pick(rng, (0, 1, 2, 5, 50))), int(pick(rng, (0, 1, 2, 3, 60, -1)))
    labels = rng.integers(0, 3, size=examples)
    seed = int(pick(rng, (0, 1, 2**31, 2**63)))
    alpha, each = pick(rng, FLOATS), pick(rng, (0, 1, 2, 100, -1))
    kind = pick(rng, ("iid", "dirichlet", "skewed", "shards", "feature", "label"))
    holders = {int(rng.integers(-1, 4)): [int(a) for a in rng.integers(-1, 4, size=rng.integers(3))] for _ in range(3)}
    calls: dict[str, Callable[[], Any]] = {
        "iid": lambda: partition.iid(examples, agents, seed),
        "dirichlet": lambda: partition.dirichlet(labels, agents, alpha, seed),
        "skewed": lambda: partition.skewed(labels, agents, alpha, pick(rng, FLOATS), seed),
        "shards": lambda: partition.shards(labels, agents, each, seed),
        "feature": lambda: partition.by_feature(np.zeros((examples, 2)), agents, each),
        "label": lambda: partition.by_label(labels, holders, agents, seed),
    }

    def look() -> None:
        made = calls[kind]()
        assert made.sizes().sum() == examples, "an example has no owner"
        assert len(made.sizes()) == agents, "somebody is no agent"
        assert kind == "skewed" or (made.sizes() > 0).all(), "an agent has no data"

    return _refusable(
        look
    ), f"partition {kind}: {examples=} {agents=} {seed=} {alpha=} {each=} {holders=} {labels.tolist()}"


def _likelihoods(rng: Rng) -> tuple[Callable[[], Any], str]:
    shape = (int(pick(rng, (0, 1, 2))), int(pick(rng, (0, 1, 2, 3))), int(pick(rng, (0, 1, 2))))
    tables = rng.dirichlet(np.ones(max(shape[2], 1)), size=shape[:2])[..., : shape[2]]
    if chance(rng, 0.4) and tables.size:
        tables.flat[int(rng.integers(tables.size))] = pick(rng, FLOATS)
    truth = int(pick(rng, (0, 1, -1, 5, INTEGERS[3])))

    def look() -> None:
        information = finite_information(tables, truth)
        assert (information >= 0).all(), f"negative information {information}"
        rate(np.full(shape[0], 1 / max(shape[0], 1)), information, truth)

    return _refusable(look), f"finite_information({tables.tolist()}, {truth})"
