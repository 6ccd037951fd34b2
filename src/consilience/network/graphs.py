"""The usual networks. Each is sparse from the start, so its size is limited by its edges, not by N²."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from consilience.network.network import Network
from consilience.network.weights import RULES, Rule


def star(edges: int = 8, trust: float = 0.5) -> Network:
    """A hub (agent 0) and `edges` edge agents (Sec. 4.2.1): the hub hears all alike, each edge trusts the hub by a.

    >>> star(2, trust=0.3).W.toarray().round(2).tolist()
    [[0.33, 0.33, 0.33], [0.3, 0.7, 0.0], [0.3, 0.0, 0.7]]
    """
    N, edge = edges + 1, np.arange(1, edges + 1)
    hub = np.zeros(edges, dtype=int)
    rows = np.concatenate([np.zeros(N, dtype=int), edge, edge])
    columns = np.concatenate([np.arange(N), hub, edge])
    values = np.concatenate([np.full(N, 1 / N), np.full(edges, trust), np.full(edges, 1 - trust)])
    return Network(sp.csr_array((values, (rows, columns)), shape=(N, N)), f"star({edges}, a={trust:g})")


def grid(rows: int = 3, columns: int = 3, weights: Rule = "uniform") -> Network:
    """A rectangle of agents, each linked to the ones beside, above and below it; numbered row by row.

    >>> grid(3, 3).neighbours(4)
    [1, 3, 4, 5, 7]
    """
    # Two lines of agents crossed: an edge along one and the same place along the other.
    links = sp.kron(_line(rows), sp.eye_array(columns)) + sp.kron(sp.eye_array(rows), _line(columns))
    return _undirected(links, f"grid({rows}×{columns})", weights)


def path(agents: int = 9, weights: Rule = "uniform") -> Network:
    """A line of agents, each linked to the one before and the one after.

    >>> path(3).neighbours(1)
    [0, 1, 2]
    """
    return _undirected(_line(agents), f"path({agents})", weights)


def ring(agents: int = 9, weights: Rule = "uniform", directed: bool = False) -> Network:
    """A circle of agents, each linked to both sides, or hearing only the one before it when `directed`.

    >>> ring(4, directed=True).neighbours(0)
    [0, 3]
    """
    heard = _edges(np.arange(agents), (np.arange(agents) - 1) % agents, agents)
    if directed:
        return Network(RULES[weights](heard), f"directed ring({agents})")
    return _undirected(heard + heard.T, f"ring({agents})", weights)


def complete(agents: int = 9, weights: Rule = "uniform") -> Network:
    """Everybody hears everybody alike; N² edges by its nature.

    >>> complete(3).edges
    9
    """
    return _undirected(np.ones((agents, agents)), f"complete({agents})", weights)


def erdos_renyi(agents: int = 9, probability: float = 0.5, seed: int = 0, weights: Rule = "uniform") -> Network:
    """Every pair is linked independently with the same probability.

    >>> erdos_renyi(5, probability=1.0).edges == complete(5).edges
    True
    """
    import networkx as nx

    graph = nx.fast_gnp_random_graph(agents, probability, seed=seed)
    return _undirected(_adjacency(graph), f"erdos-renyi({agents}, p={probability:g})", weights)


def watts_strogatz(
    agents: int = 9, neighbours: int = 4, probability: float = 0.1, seed: int = 0, weights: Rule = "uniform"
) -> Network:
    """A small world: a ring in which each is linked to its `neighbours` nearest, some links rewired at random.

    >>> watts_strogatz(9, neighbours=4, probability=0.0).neighbours(4)
    [2, 3, 4, 5, 6]
    """
    import networkx as nx

    graph = nx.watts_strogatz_graph(agents, neighbours, probability, seed=seed)
    return _undirected(_adjacency(graph), f"watts-strogatz({agents}, k={neighbours}, p={probability:g})", weights)


def _undirected(links: Any, name: str, weights: Rule) -> Network:
    return Network(RULES[weights](links), name)


def _adjacency(graph: Any) -> Any:
    import networkx as nx

    return nx.to_scipy_sparse_array(graph, nodelist=range(graph.number_of_nodes()), dtype=np.float64, format="csr")


def _edges(receivers: Any, senders: Any, agents: int) -> Any:
    return sp.csr_array((np.ones(len(receivers)), (receivers, senders)), shape=(agents, agents))


def _line(agents: int) -> Any:
    forward = _edges(np.arange(1, agents), np.arange(agents - 1), agents)
    return forward + forward.T
