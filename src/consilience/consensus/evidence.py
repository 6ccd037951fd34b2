"""What an agent's own data says, kept apart from what others say: its site, in natural parameters."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from consilience.agent import Learner
from consilience.beliefs import Categorical, Gaussian, MeanField
from consilience.errors import InputError

Belief = TypeVar("Belief")
Damping: TypeAlias = float | Float[Array, ""]


def nothing(like: Belief) -> Belief:
    """The site of no data: natural parameters of zero.

    >>> nothing(MeanField(jnp.ones(2), jnp.ones(2))).precision.tolist()
    [0.0, 0.0]
    """
    zero: Belief = jax.tree.map(jnp.zeros_like, like)
    return zero


def plus(one: Belief, other: Any, factor: Any = 1.0) -> Belief:
    """one + factor · other, in natural parameters: a product of densities, the other to a power."""
    summed: Belief = jax.tree.map(lambda x, y: x + jnp.asarray(factor, x.dtype) * y, one, other)
    return summed


def checked_damping(learner: Learner, damping: float) -> float:
    """The damping, where it can be: what is not taken on of new data the first time is never seen again."""
    if damping != 1 and not learner.reuses:
        raise InputError(f"damping: data that comes once counts whole, got {damping:g}")
    return damping


def renewed(site: Belief, b: Belief, q: Belief, damping: Damping) -> tuple[Belief, Float[Array, ""]]:
    """The site after learning took q to b: t^(1−ρ) (b / cavity)^ρ = t + ρ (b − q), and how much of it was floored.

    Between independent coordinates a site that would take precision away is given none (its mean stays where learning
    put it), so that the product of a prior and any sites, old or new, is a distribution. Between hypotheses the
    constant means nothing, and must not be summed: everybody's b has made up for all of q's, so that they would grow
    like (1 − N)^rounds.
    """
    new = plus(site, plus(b, q, -1.0), damping)
    if isinstance(new, Categorical):
        return new.centred(), jnp.zeros(())  # type: ignore[return-value]
    if not isinstance(new, MeanField):
        return new, jnp.zeros(())
    belief: Any = plus(q, plus(new, site, -1.0))  # q with the new site in the place of the old one
    taken = new.precision < 0
    positive = jnp.where(belief.precision > 0, belief.precision, q.precision)  # type: ignore[attr-defined]
    mean = belief.precision_mean / positive
    floored = MeanField(
        jnp.where(taken, 0, new.precision),
        jnp.where(taken, new.precision_mean - new.precision * mean, new.precision_mean),
    )
    return floored, jnp.mean(taken.astype(jnp.result_type(float)))  # type: ignore[return-value]


def at_least(belief: Belief, least: Belief) -> tuple[Belief, Float[Array, ""]]:
    """The belief with no coordinate less precise than another's, and what share of them had to be raised.

    Between independent coordinates means stay. A full precision is looked at only where it is none: sums of evidence
    that are not mixed yet can be negative in some direction, and there they say nothing.
    """
    if isinstance(belief, Gaussian):
        return _positive(belief, least)  # type: ignore[return-value, arg-type]
    if not isinstance(belief, MeanField):
        return belief, jnp.zeros(())
    low = belief.precision < least.precision  # type: ignore[attr-defined]
    positive = jnp.where(belief.precision > 0, belief.precision, least.precision)  # type: ignore[attr-defined]
    raised = jnp.where(low, least.precision, belief.precision)  # type: ignore[attr-defined]
    mean = jnp.where(low, belief.precision_mean / positive * raised, belief.precision_mean)
    return MeanField(raised, mean), jnp.mean(low.astype(jnp.result_type(float)))  # type: ignore[return-value]


def _positive(belief: Gaussian, least: Gaussian) -> tuple[Gaussian, Float[Array, ""]]:
    def sound() -> tuple[Gaussian, Float[Array, ""]]:
        return belief, jnp.zeros((), belief.precision.dtype)

    def raised() -> tuple[Gaussian, Float[Array, ""]]:
        values, vectors = jnp.linalg.eigh(belief.precision - least.precision)
        precision = least.precision + (vectors * jnp.maximum(values, 0)) @ vectors.T
        return Gaussian(precision, belief.precision_mean), jnp.mean((values < 0).astype(precision.dtype))

    whole = jnp.isfinite(jnp.linalg.cholesky(belief.precision)).all()
    found: tuple[Gaussian, Float[Array, ""]] = lax.cond(whole, sound, raised)
    return found
