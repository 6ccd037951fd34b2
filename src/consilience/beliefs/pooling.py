"""The consensus step, once for every family."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Beliefs = TypeVar("Beliefs")
DENSE = 16  # an edge's term in a sum over edges is gathered, weighted and scattered: as dear as this many in a product


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Edges:
    """The nonzero entries of W: agent `receivers[e]` hears agent `senders[e]` with weight `weights[e]`.

    Sorted by receiver. `agents` is the number of receivers; it is part of the program, not of its data.
    """

    weights: Float[Array, "edges"]
    senders: Int[Array, "edges"]
    receivers: Int[Array, "edges"]
    agents: int = field(metadata={"static": True})

    def mostly(self, senders: int) -> bool:
        """Whether so many pairs are edges that one dense product is cheaper than a sum over the edges."""
        return self.weights.shape[0] * DENSE >= self.agents * senders

    def to_matrix(self, senders: int) -> Float[Array, "receivers senders"]:
        """The entries in their places."""
        zero = jnp.zeros((self.agents, senders), self.weights.dtype)
        return zero.at[self.receivers, self.senders].add(self.weights)


def pool(weights: Float[Array, "*receivers senders"] | Edges, beliefs: Beliefs) -> Beliefs:
    """Weighted geometric mean of the beliefs stacked along the leading axis, renormalised (eq. 4).

    q_i ∝ exp(Σ_j W_ij log b_j) is, in any exponential family, η_i = Σ_j W_ij η_j. `weights` is one row of W (the result
    is one belief), a matrix W, or its nonzero entries as `Edges`, for which the cost is edges × parameters.

    >>> from consilience.beliefs import MeanField
    >>> two = MeanField.from_moments(jnp.array([[0.0], [1.0]]), jnp.array([[1.0], [0.25]]))
    >>> pool(jnp.array([0.5, 0.5]), two).mean.tolist()
    [0.8]
    """

    def weighted_sum(eta: Float[Array, "senders *natural"]) -> Float[Array, "*receivers *natural"]:
        if isinstance(weights, Edges) and not weights.mostly(eta.shape[0]):
            heard = weights.weights.reshape(-1, *(1,) * (eta.ndim - 1)).astype(eta.dtype) * eta[weights.senders]
            return jax.ops.segment_sum(heard, weights.receivers, weights.agents, indices_are_sorted=True)
        matrix = weights.to_matrix(eta.shape[0]) if isinstance(weights, Edges) else weights
        return jnp.tensordot(matrix.astype(eta.dtype), eta, axes=1)

    pooled: Beliefs = jax.tree.map(weighted_sum, beliefs)
    return pooled
