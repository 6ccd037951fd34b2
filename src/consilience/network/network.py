"""A network is its matrix W, sparse, with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from consilience.errors import InputError

if TYPE_CHECKING:  # JAX and networkx take longer to import than most theory takes to compute
    from consilience.beliefs import Edges


@dataclass(frozen=True, eq=False)
class Network:
    """A directed weighted graph: agent i hears agent j with weight W_ij, and every row of W sums to 1.

    W is a scipy CSR array without stored zeros, its indices sorted; `names` are the agents' names where they have any.

    >>> pair = Network([[0.5, 0.5], [0.25, 0.75]], "pair", names=("ann", "bob"))
    >>> pair.agents, pair.edges
    (2, 4)
    """

    W: Any
    name: str = "network"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        W = sp.csr_array(self.W, dtype=np.float64, copy=True)
        W.sum_duplicates()
        W.eliminate_zeros()
        object.__setattr__(self, "W", W)

    @property
    def agents(self) -> int:
        """N."""
        return int(self.W.shape[0])

    @property
    def edges(self) -> int:
        """The number of nonzero entries of W, self-weights included."""
        return int(self.W.nnz)

    def neighbours(self, agent: int) -> list[int]:
        """The agents that this agent hears, itself included where it has a self-weight.

        >>> from consilience.network import path
        >>> path(3).neighbours(0)
        [0, 1]
        """
        start, stop = self.W.indptr[agent : agent + 2]
        return [int(j) for j in self.W.indices[start:stop]]

    def to_edges(self) -> Edges:
        """The nonzero entries of W as arrays that a jitted program can use."""
        import jax.numpy as jnp

        from consilience.beliefs import Edges

        receivers = np.repeat(np.arange(self.agents, dtype=np.int32), np.diff(self.W.indptr))
        senders = self.W.indices.astype(np.int32)
        return Edges(jnp.asarray(self.W.data), jnp.asarray(senders), jnp.asarray(receivers), self.agents)

    def to_networkx(self) -> Any:
        """A networkx DiGraph in which an edge points the way information flows: from j to i with `weight` W_ij."""
        import networkx as nx

        graph = nx.from_scipy_sparse_array(sp.csr_array(self.W.T), create_using=nx.DiGraph)
        return nx.relabel_nodes(graph, dict(enumerate(self.names))) if self.names else graph


def from_matrix(rows: Any, name: str = "matrix", names: Sequence[str] = ()) -> Network:
    """A network from a square matrix, dense or scipy sparse.

    >>> from_matrix([[0.5, 0.5], [0.25, 0.75]]).neighbours(1)
    [0, 1]
    """
    try:
        rows = rows if sp.issparse(rows) else np.asarray(rows)
        if rows.dtype.kind == "c":
            raise InputError("W: must be a square matrix of real numbers, got complex ones")
        rows = rows.astype(np.float64)
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("W: must be a square matrix of numbers, got rows of different lengths or text") from None
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or rows.shape[0] == 0:
        raise InputError(f"W: must be a square matrix, got shape {' × '.join(map(str, rows.shape))}")
    return Network(rows, name, tuple(names))


def from_networkx(graph: Any, name: str = "networkx", weight: str | None = "weight") -> Network:
    """A network from a networkx graph whose edge j → i (or j — i) carries the weight with which i hears j.

    `weight` names the attribute to read. Without it (None), or where no edge has it, every agent trusts its neighbours
    and itself alike.

    >>> import networkx as nx
    >>> from_networkx(nx.path_graph(3)).W.toarray().round(2).tolist()
    [[0.5, 0.5, 0.0], [0.33, 0.33, 0.33], [0.0, 0.5, 0.5]]
    """
    import networkx as nx

    from consilience.network.weights import uniform

    if graph.number_of_nodes() == 0:
        raise InputError("graph: must have at least one node, got none")
    nodes = list(graph.nodes)
    weighted = nx.get_edge_attributes(graph, weight) if weight else {}
    if weighted and len(weighted) < graph.number_of_edges():
        lacking = next(edge for edge in graph.edges if edge not in weighted)
        raise InputError(f"graph: either every edge has a '{weight}' or none, edge {lacking} has none")
    heard = sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=nodes, weight=weight, dtype=np.float64).T)
    names = () if nodes == list(range(len(nodes))) else tuple(map(str, nodes))
    return Network(heard if weighted else uniform(heard), name, names)
