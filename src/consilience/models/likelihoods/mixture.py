"""Equal mixtures of Gaussians, (1/L) Σ_k N(μ_k, σ_k²): what draws of a mean and a noise predict for one example.

Every function is of one example; `by_row` makes it one of many. A single σ may stand for all draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, logsumexp, ndtri
from jaxtyping import Array, Float

ROWS = 500  # at a time
TURNS = 400  # of a search: enough for more halvings than a number has digits


def by_row(of_one: Callable[..., Any], *arrays: Any) -> Any:
    """A function of one example's numbers, for all examples, some at a time."""
    return jax.lax.map(lambda row: of_one(*row), arrays, batch_size=ROWS)


def log_density(value: Float[Array, ""], means: Float[Array, "draws"], sds: Float[Array, "#draws"]) -> Float[Array, ""]:
    """log (1/L) Σ_k N(y; μ_k, σ_k²).

    >>> log_density(jnp.array(0.0), jnp.zeros(3), jnp.ones(3)).round(4).item()  # −½ log 2π
    -0.9189
    """
    return logsumexp(log_normal(value, means, jnp.log(sds))) - jnp.log(means.shape[0])


def log_normal(value: Float[Array, "..."], mean: Float[Array, "..."], log_sd: Float[Array, "..."]) -> Array:
    """log N(y; μ, σ²)."""
    return -0.5 * ((value - mean) * jnp.exp(-log_sd)) ** 2 - log_sd - 0.5 * jnp.log(2 * jnp.pi)


def cdf(value: Float[Array, ""], means: Float[Array, "draws"], sds: Float[Array, "#draws"]) -> Float[Array, ""]:
    """F(y) = (1/L) Σ_k Φ((y − μ_k) / σ_k)."""
    return 0.5 + 0.5 * jnp.mean(erf((value - means) / (sds * jnp.sqrt(2.0))))


def crps(value: Float[Array, ""], means: Float[Array, "draws"], sds: Float[Array, "#draws"]) -> Float[Array, ""]:
    """∫ (F(x) − 1{y ≤ x})² dx = E|X − y| − ½ E|X − X'| (Grimit et al. 2006).

    >>> f"{crps(jnp.array(0.0), jnp.zeros(2), jnp.ones(1)):.4f}"  # (√2 − 1) / √π
    '0.2337'
    """
    variances = jnp.broadcast_to(sds**2, means.shape)
    apart, together = means[:, None] - means, variances[:, None] + variances
    return _mean_absolute(value - means, variances).mean() - 0.5 * _mean_absolute(apart, together).mean()


def quantile(share: Float[Array, ""], means: Float[Array, "draws"], sds: Float[Array, "#draws"]) -> Float[Array, ""]:
    """The x with F(x) = share, which lies between the smallest and the largest of the draws' own.

    Newton's steps inside that bracket, and a halving of it where a step leads outside and at every sixth turn.

    >>> f"{quantile(jnp.array(0.975), jnp.zeros(2), jnp.ones(2)):.4f}"
    '1.9600'
    """
    own = means + ndtri(share) * sds
    close = 64 * float(np.finfo(own.dtype).eps) * (jnp.abs(own).max() + sds.max())

    def narrow(state: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        turn, low, high, x, _ = state
        excess = cdf(x, means, sds) - share
        low, high = jnp.where(excess < 0, x, low), jnp.where(excess < 0, high, x)
        step = excess / _density(x, means, sds)
        inside = (x - step > low) & (x - step < high) & (turn % 6 != 5)
        near = jnp.abs(step) <= close
        x = jnp.where(near | inside, x - step, (low + high) / 2)
        return turn + 1, low, high, x, near | (high - low <= close)

    of_one = means.mean() + ndtri(share) * jnp.sqrt(jnp.mean(sds**2) + means.var())  # Gaussian: nearly right
    first = jnp.clip(of_one, own.min(), own.max())
    start = (jnp.zeros((), int), own.min(), own.max(), first, jnp.zeros((), bool))
    return jax.lax.while_loop(lambda state: ~state[4] & (state[0] < TURNS), narrow, start)[3]


def interval(
    means: Float[Array, "examples draws"], sds: Float[Array, "examples #draws"], level: Any
) -> tuple[Float[Array, "examples"], Float[Array, "examples"]]:
    """The ends of the central interval that holds this share, of every example."""
    shares = jnp.stack([jnp.asarray((1 - level) / 2, means.dtype), jnp.asarray((1 + level) / 2, means.dtype)])
    ends = by_row(lambda *row: jax.vmap(quantile, (0, None, None))(shares, *row), means, sds)
    return ends[:, 0], ends[:, 1]


def _density(value: Float[Array, ""], means: Float[Array, "draws"], sds: Float[Array, "#draws"]) -> Float[Array, ""]:
    return jnp.mean(jnp.exp(-0.5 * ((value - means) / sds) ** 2) / sds) / jnp.sqrt(2 * jnp.pi)


def _mean_absolute(mean: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """E|X| of a Gaussian: 2 s φ(m/s) + m (2 Φ(m/s) − 1)."""
    sd = jnp.sqrt(variance)
    density = jnp.exp(-0.5 * (mean / sd) ** 2) / jnp.sqrt(2 * jnp.pi)
    return 2 * sd * density + mean * erf(mean / (sd * jnp.sqrt(2.0)))
