"""What every family of beliefs can do, and the check of the values it is built from."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PRNGKeyArray

from consilience.errors import InputError


@runtime_checkable
class Belief(Protocol):
    """A distribution over the shared parameter, as natural parameters that may be stacked along leading axes."""

    @classmethod
    def from_moments(cls, *moments: Any) -> Any:
        """The member of the family with these moments."""
        ...

    def moments(self) -> Any:
        """What `from_moments` takes: probabilities, (mean, covariance), (mean, variance) or the point."""
        ...

    def log_density(self, value: Any) -> Array:
        """Log density (log probability where the family is discrete) at a value."""
        ...

    def kl(self, other: Any) -> Array:
        """KL(self ‖ other), in nats."""
        ...

    def sample(self, key: PRNGKeyArray, count: int) -> Array:
        """Independent draws along a new leading axis of length `count`."""
        ...


def require(condition: ArrayLike, name: str, rule: str, value: ArrayLike) -> None:
    """Refuse a value that breaks a rule, naming it; inside a jitted program there is no value to look at yet."""
    if isinstance(condition, jax.core.Tracer):
        return
    broken = ~jnp.asarray(condition)
    if broken.any():
        offending = jnp.broadcast_to(jnp.asarray(value), broken.shape)[broken][0] if broken.ndim else value
        raise InputError(f"{name}: {rule}, got {offending}")
