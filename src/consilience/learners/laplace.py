"""Laplace's approximation with a full covariance, for models whose outputs are linear in their parameters.

An agent's evidence is the quadratic approximation of its log likelihood at a point θ: its precision is
H = −∇² log ℓ(data | θ), its precision × mean H θ + ∇ log ℓ(data | θ). Where everybody's point is the common mode, the
prior times everybody's evidence is Laplace's approximation of the posterior of all data: for regressions, mode and
standard errors of the pooled table. A round is a Newton step. A point moves towards the mode of what is believed, but
no further than changes an output by `MOST`: far from its optimum a likelihood is nothing like a quadratic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field, PositiveFloat

from consilience.agent import Info, Learner
from consilience.beliefs import Gaussian
from consilience.described.fields import Described
from consilience.learners.minibatches import Minibatches
from consilience.models import LogDensity

MOST = 2.0  # what an output may change by in a Newton step


class LaplaceOptions(Described):
    """The constants of Laplace's approximation."""

    prior_sd: PositiveFloat = Field(1.0, description="of every coefficient: the prior is N(0, prior_sd²)")


class LaplaceState(NamedTuple):
    """What an agent keeps: the point, where it should go, its evidence at the point, and the prior."""

    point: Float[Array, "d"]
    towards: Float[Array, "d"]
    evidence: Gaussian
    prior: Gaussian


def laplace_learner(
    apply: Callable[[Float[Array, "d"], Array], Array],
    size: int,
    prior_sd: float,
    likelihood: LogDensity,
    concave: bool = True,
) -> Learner:
    """Laplace's approximation, for sites or tracking. `apply(θ, inputs)` is the model, its parameters one vector.

    concave: whether log ℓ is concave in the outputs; where it is not, negative curvatures of an agent are cut off.
    """

    def prior(given: Any) -> Gaussian:
        return Gaussian(jnp.eye(size) / prior_sd**2, jnp.zeros(size))

    def init(given: Any) -> LaplaceState:
        first = prior(given)
        nothing = jax.tree.map(jnp.zeros_like, first)
        return LaplaceState(jnp.zeros(size), jnp.zeros(size), nothing, first)

    def fit(key: PRNGKeyArray, own: LaplaceState, batch: Minibatches) -> tuple[LaplaceState, Info]:
        point = lax.cond(batch.first == 0, lambda: _moved(apply, own, batch), lambda: own.point)
        begins = jax.tree.map(lambda x: jnp.where(batch.first == 0, 0, x), own.evidence)
        whole = _negative_log_likelihood(apply, likelihood, batch)

        def add(number: Int[Array, ""], total: Gaussian) -> Gaussian:
            slope, H = whole(point, number)
            return Gaussian(total.precision + H, total.precision_mean + H @ point - slope)

        evidence = lax.fori_loop(batch.first, batch.last, add, begins)
        if not concave:
            evidence = _bent_up(evidence, point)
        return own._replace(point=point, evidence=evidence), {}

    def belief(own: LaplaceState) -> Gaussian:
        return Gaussian(*(x + y for x, y in zip(own.prior, own.evidence, strict=True)))

    def start(own: LaplaceState, prior: Gaussian, q: Gaussian) -> LaplaceState:
        mode = q.mean  # not a number where sums that are not mixed yet have no precision: then it stays
        return own._replace(prior=prior, towards=jnp.where(jnp.isfinite(mode).all(), mode, own.point))

    def adopt(own: LaplaceState) -> LaplaceState:
        return own._replace(evidence=jax.tree.map(jnp.zeros_like, own.evidence))

    return Learner(prior, init, fit, belief, start, adopt, reuses=True)


def _moved(apply: Any, own: LaplaceState, batch: Minibatches) -> Float[Array, "d"]:
    """The point on the way to where it should go at which no output of the agent's data has changed too much."""

    def furthest(number: Int[Array, ""], most: Array) -> Array:
        inputs, _ = batch.step(number)
        change = jnp.abs(_outputs(apply, own.towards, inputs) - _outputs(apply, own.point, inputs))
        return jnp.maximum(most, change.max())

    change = lax.fori_loop(0, batch.steps, furthest, jnp.zeros((), own.point.dtype))
    return own.point + (own.towards - own.point) * jnp.minimum(1, MOST / jnp.maximum(change, 1e-30))


def _outputs(apply: Any, point: Array, inputs: Array) -> Float[Array, "batch outputs"]:
    """What the model says of each input, as one array."""
    made = apply(point, inputs)
    return jnp.concatenate([jnp.asarray(part).reshape(inputs.shape[0], -1) for part in jax.tree.leaves(made)], axis=1)


def _negative_log_likelihood(apply: Any, likelihood: LogDensity, batch: Minibatches) -> Any:
    """Gradient and Hessian of −log ℓ of a step's examples, at a point; exact, as outputs are linear in parameters."""

    def of_one(point: Array, x: Array, y: Array) -> Float[Array, ""]:
        return -likelihood(apply(point, x[None]), y[None])[0]

    def at(point: Array, number: Any) -> tuple[Array, Array]:
        inputs, targets = batch.step(number)
        count = inputs.shape[0] if batch.counts is None else batch.counts[number]
        real = (jnp.arange(inputs.shape[0]) < count).astype(point.dtype)

        def total(point: Array) -> Float[Array, ""]:
            return jnp.sum(real * jax.vmap(of_one, (None, 0, 0))(point, inputs, targets))

        slope, hessian = jax.grad(total)(point), jax.hessian(total)(point)
        return slope, (hessian + hessian.T) / 2

    return at


def _bent_up(evidence: Gaussian, point: Array) -> Gaussian:
    """The same slope at the point, with no negative curvature."""
    values, vectors = jnp.linalg.eigh(evidence.precision)
    H = (vectors * jnp.maximum(values, 0)) @ vectors.T
    return Gaussian(H, evidence.precision_mean + (H - evidence.precision) @ point)
