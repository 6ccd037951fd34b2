"""Gaussian beliefs with a full covariance."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.beliefs.family import require


class Gaussian(NamedTuple):
    """N(μ, Σ); its natural parameters are the precision Σ⁻¹ and the precision times the mean Σ⁻¹μ.

    >>> belief = Gaussian.from_moments(jnp.array([1.0, 2.0]), jnp.diag(jnp.array([4.0, 0.5])))
    >>> belief.precision_mean.round(6).tolist()
    [0.25, 4.0]
    """

    precision: Float[Array, "*batch d d"]
    precision_mean: Float[Array, "*batch d"]

    @classmethod
    def from_moments(cls, mean: Float[Array, "*batch d"], covariance: Float[Array, "*batch d d"]) -> Gaussian:
        """From a mean and a symmetric positive definite covariance."""
        require(jnp.isfinite(mean), "mean", "must be finite", mean)
        variance = jnp.diagonal(covariance, axis1=-2, axis2=-1)
        require(variance > 0, "covariance", "must have positive variances on its diagonal", variance)
        crooked = jnp.abs(covariance - jnp.swapaxes(covariance, -1, -2)).max((-2, -1))
        require(crooked <= 1e-5 * variance.max(-1), "covariance", "must be symmetric, its halves differ", crooked)
        factor = _factor(covariance)
        require(jnp.isfinite(factor).all((-2, -1)), "covariance", "must be positive definite", jnp.nan)
        precision = _inverse(factor)
        return cls(precision, _matvec(precision, mean))

    @property
    def mean(self) -> Float[Array, "*batch d"]:
        """μ, solved from the natural parameters."""
        return _solve(_factor(self.precision), self.precision_mean)

    def moments(self) -> tuple[Float[Array, "*batch d"], Float[Array, "*batch d d"]]:
        """(μ, Σ)."""
        factor = _factor(self.precision)
        return _solve(factor, self.precision_mean), _inverse(factor)

    def log_density(self, value: Float[Array, "... d"]) -> Float[Array, ...]:
        """log N(value; μ, Σ)."""
        factor = _factor(self.precision)
        offset = value - _solve(factor, self.precision_mean)
        d = value.shape[-1]
        return 0.5 * (_log_det(factor) - _quadratic(self.precision, offset) - d * jnp.log(2 * jnp.pi))

    def log_ratio(self, value: Float[Array, "... d"], other: Float[Array, "... d"]) -> Float[Array, ...]:
        """log N(value) − log N(other): the normaliser cancels, so nothing is factorised."""
        squares = _quadratic(self.precision, value) - _quadratic(self.precision, other)
        return jnp.sum(self.precision_mean * (value - other), axis=-1) - 0.5 * squares

    def kl(self, other: Gaussian) -> Float[Array, "*batch"]:
        """KL(self ‖ other) = ½ [tr(Λ'Σ) − d + (μ−μ')ᵀΛ'(μ−μ') + log|Λ| − log|Λ'|]."""
        mine, theirs = _factor(self.precision), _factor(other.precision)
        offset = self.mean - other.mean
        # tr(Λ'Σ) = ‖L⁻¹L'‖² with Λ = LLᵀ: a sum of squares, so rounding cannot make it negative.
        trace = jnp.sum(solve_triangular(mine, theirs, lower=True) ** 2, axis=(-2, -1))
        d = offset.shape[-1]
        return 0.5 * (trace - d + _quadratic(other.precision, offset) + _log_det(mine) - _log_det(theirs))

    def sample(self, key: PRNGKeyArray, count: int) -> Float[Array, "count *batch d"]:
        """Draws μ + L⁻ᵀ ε with Λ = LLᵀ."""
        factor = _factor(self.precision)
        noise = jax.random.normal(key, (count, *self.precision_mean.shape), self.precision_mean.dtype)
        stacked = jnp.broadcast_to(factor, (*noise.shape, factor.shape[-1]))
        spread = solve_triangular(stacked, noise[..., None], lower=True, trans=1)[..., 0]
        return self.mean + spread


def _factor(matrix: Float[Array, "*batch d d"]) -> Float[Array, "*batch d d"]:
    """The Cholesky factor L of LLᵀ = matrix, scaled to a unit diagonal first.

    The scaling makes parameters of very different units harmless: what remains to go wrong is true correlation.
    """
    scale = jnp.sqrt(jnp.diagonal(matrix, axis1=-2, axis2=-1))
    unit: Float[Array, "*batch d d"] = jnp.linalg.cholesky(matrix / (scale[..., :, None] * scale[..., None, :]))
    return scale[..., :, None] * unit


def _solve(factor: Float[Array, "*batch d d"], vector: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    return cho_solve((factor, True), vector[..., None])[..., 0]


def _inverse(factor: Float[Array, "*batch d d"]) -> Float[Array, "*batch d d"]:
    """(LLᵀ)⁻¹ = MᵀM with M = L⁻¹: symmetric to the last bit."""
    root = solve_triangular(
        factor, jnp.broadcast_to(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape), lower=True
    )
    return jnp.swapaxes(root, -1, -2) @ root


def _log_det(factor: Float[Array, "*batch d d"]) -> Float[Array, "*batch"]:
    return 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def _matvec(matrix: Float[Array, "... d d"], vector: Float[Array, "... d"]) -> Float[Array, "... d"]:
    return (matrix @ vector[..., None])[..., 0]


def _quadratic(matrix: Float[Array, "... d d"], vector: Float[Array, "... d"]) -> Float[Array, ...]:
    return jnp.sum(vector * _matvec(matrix, vector), axis=-1)
