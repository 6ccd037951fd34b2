"""Point estimates, so that learners without uncertainty (the baselines) pool by the same mechanism."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.beliefs.family import require


class Point(NamedTuple):
    """All mass on one value: the limit of equally precise Gaussians, whose pooling is the average of the values.

    >>> Point.from_moments(jnp.array([1.0, 2.0])).kl(Point(jnp.array([1.0, 2.0]))).item()
    0.0
    """

    value: Float[Array, "*batch d"]

    @classmethod
    def from_moments(cls, value: Float[Array, "*batch d"]) -> Point:
        """From the value itself."""
        require(jnp.isfinite(value), "value", "must be finite", value)
        return cls(value)

    def moments(self) -> Float[Array, "*batch d"]:
        """The value."""
        return self.value

    def log_density(self, value: Float[Array, "... d"]) -> Float[Array, ...]:
        """Log probability: 0 at the value, −∞ elsewhere."""
        return jnp.where((value == self.value).all(-1), 0.0, -jnp.inf)

    def kl(self, other: Point) -> Float[Array, "*batch"]:
        """0 between equal points, ∞ otherwise."""
        return jnp.where((other.value == self.value).all(-1), 0.0, jnp.inf)

    def sample(self, key: PRNGKeyArray, count: int) -> Float[Array, "count *batch d"]:
        """The value, `count` times."""
        return jnp.broadcast_to(self.value, (count, *self.value.shape))
