"""Gaussian beliefs with independent coordinates: what a network's weights are given."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.beliefs.family import require


class MeanField(NamedTuple):
    """Π_k N(μ_k, σ_k²); its natural parameters are the precisions 1/σ² and μ/σ².

    >>> MeanField.from_moments(jnp.array([3.0]), jnp.array([0.5])).precision_mean.tolist()
    [6.0]
    """

    precision: Float[Array, "*batch d"]
    precision_mean: Float[Array, "*batch d"]

    @classmethod
    def from_moments(cls, mean: Float[Array, "*batch d"], variance: Float[Array, "*batch d"]) -> MeanField:
        """From means and positive variances."""
        require(jnp.isfinite(mean), "mean", "must be finite", mean)
        require((variance > 0) & jnp.isfinite(variance), "variance", "must be positive and finite", variance)
        return cls(1 / variance, mean / variance)

    @property
    def mean(self) -> Float[Array, "*batch d"]:
        """μ."""
        return self.precision_mean / self.precision

    def moments(self) -> tuple[Float[Array, "*batch d"], Float[Array, "*batch d"]]:
        """(μ, σ²)."""
        return self.mean, 1 / self.precision

    def log_density(self, value: Float[Array, "... d"]) -> Float[Array, ...]:
        """Σ_k log N(value_k; μ_k, σ_k²)."""
        squares = self.precision * (value - self.mean) ** 2
        return 0.5 * jnp.sum(jnp.log(self.precision) - squares - jnp.log(2 * jnp.pi), axis=-1)

    def kl(self, other: MeanField) -> Float[Array, "*batch"]:
        """KL(self ‖ other) = ½ Σ_k [r − 1 − log r + λ'(μ−μ')²] with r = λ'/λ."""
        ratio = other.precision / self.precision
        squares = other.precision * (self.mean - other.mean) ** 2
        return 0.5 * jnp.sum(ratio - 1 - jnp.log(ratio) + squares, axis=-1)

    def sample(self, key: PRNGKeyArray, count: int) -> Float[Array, "count *batch d"]:
        """Draws μ + σ ε."""
        noise = jax.random.normal(key, (count, *self.precision.shape), self.precision.dtype)
        return self.mean + noise / jnp.sqrt(self.precision)
