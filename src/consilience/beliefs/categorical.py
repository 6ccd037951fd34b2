"""Beliefs over a finite set of hypotheses."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.beliefs.family import require


class Categorical(NamedTuple):
    """A distribution over k hypotheses; its natural parameters are log-probabilities up to one constant.

    >>> belief = Categorical.from_moments(jnp.array([0.2, 0.8]))
    >>> [round(float(p), 6) for p in belief.moments()]
    [0.2, 0.8]
    """

    log_weights: Float[Array, "*batch k"]

    @classmethod
    def from_moments(cls, probabilities: Float[Array, "*batch k"]) -> Categorical:
        """From probabilities, all positive: what has probability zero can never be learned (assumption 3)."""
        require(probabilities > 0, "probabilities", "must all be greater than 0", probabilities)
        total = probabilities.sum(-1)
        require(jnp.abs(total - 1) < 1e-5, "probabilities", "must sum to 1", total)
        return cls(jnp.log(probabilities))

    @classmethod
    def uniform(cls, k: int) -> Categorical:
        """The same probability for each of k hypotheses."""
        return cls(jnp.zeros(k))

    def log_probabilities(self) -> Float[Array, "*batch k"]:
        """log b(θ), normalised."""
        return jax.nn.log_softmax(self.log_weights, axis=-1)

    def moments(self) -> Float[Array, "*batch k"]:
        """The probabilities b(θ)."""
        return jnp.exp(self.log_probabilities())

    def normalised(self) -> Categorical:
        """The same belief with its constant chosen so that the weights are log-probabilities."""
        return Categorical(self.log_probabilities())

    def centred(self) -> Categorical:
        """The same belief with its constant chosen so that the weights sum to 0; sums of such beliefs are such, too.

        >>> Categorical(jnp.array([1.0, 2.0, 6.0])).centred().log_weights.tolist()
        [-2.0, -1.0, 3.0]
        """
        return Categorical(self.log_weights - self.log_weights.mean(-1, keepdims=True))

    def log_density(self, value: Int[Array, "..."]) -> Float[Array, "..."]:
        """log b(θ) at hypothesis number `value`."""
        place = jnp.asarray(value)[..., None]
        shape = jnp.broadcast_shapes(place.shape[:-1], self.log_weights.shape[:-1])
        logs = jnp.broadcast_to(self.log_probabilities(), (*shape, self.log_weights.shape[-1]))
        return jnp.take_along_axis(logs, jnp.broadcast_to(place, (*shape, 1)), axis=-1)[..., 0]

    def kl(self, other: Categorical) -> Float[Array, "*batch"]:
        """KL(self ‖ other) = Σ p (log p − log q)."""
        log_p, log_q = self.log_probabilities(), other.log_probabilities()
        return jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1)

    def sample(self, key: PRNGKeyArray, count: int) -> Int[Array, "count *batch"]:
        """Hypothesis numbers."""
        return jax.random.categorical(key, self.log_weights, shape=(count, *self.log_weights.shape[:-1]))
