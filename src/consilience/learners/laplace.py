"""Laplace's approximation with a full covariance, for models whose outputs are linear in their parameters.

An agent's evidence is the quadratic approximation of its log likelihood at a point θ: its precision is
H = −∇² log ℓ(data | θ), its precision × mean H θ + ∇ log ℓ(data | θ). Where everybody's point is the common mode, the
prior times everybody's evidence is Laplace's approximation of the posterior of all data: for regressions, mode and
standard errors of the pooled table. A round is a Newton step. A point moves towards the mode of what is believed, but
no further than changes an output by `MOST`: far from its optimum a likelihood is nothing like a quadratic.

Where log ℓ is not concave in the outputs (a noise that is learnt) H may be no precision, and full steps diverge. So as
long as a point moves by more than `SETTLED` a curvature from above stands in for H: Σ Jᵀ C J, J being the Jacobian of
the outputs and C what the likelihood says (`Above`), or, where it says nothing, H without its negative part. Slopes are
as they are, so the mode is the same; where points have settled H is what it is, and so are standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
SETTLED = 0.1  # of an output's change: below, a log likelihood is as its quadratic approximation
Above = Callable[[Float[Array, "batch outputs"], Array], Float[Array, "batch outputs outputs"]]


class LaplaceOptions(Described):
    """The constants of Laplace's approximation."""

    prior_sd: PositiveFloat = Field(1.0, description="of every coefficient: the prior is N(0, prior_sd²)")


class LaplaceState(NamedTuple):
    """What an agent keeps: the point, where it should go, its evidence at the point, and the prior.

    moves: by how much some output would change where the point went all the way.
    """

    point: Float[Array, "d"]
    towards: Float[Array, "d"]
    moves: Float[Array, ""]
    evidence: Gaussian
    prior: Gaussian


def laplace_learner(
    apply: Callable[[Float[Array, "d"], Array], Array],
    size: int,
    prior_sd: float,
    likelihood: LogDensity,
    concave: bool = True,
    above: Above | None = None,
) -> Learner:
    """Laplace's approximation, for sites or tracking. `apply(θ, inputs)` is the model, its parameters one vector.

    concave: whether log ℓ is concave in the outputs. above: where it is not, a curvature of each example's −log ℓ in
    its outputs that is positive and large enough for steps not to diverge.
    """

    def prior(given: Any) -> Gaussian:
        return Gaussian(jnp.eye(size) / prior_sd**2, jnp.zeros(size))

    def init(given: Any) -> LaplaceState:
        first = prior(given)
        nothing = jax.tree.map(jnp.zeros_like, first)
        return LaplaceState(jnp.zeros(size), jnp.zeros(size), jnp.full((), jnp.inf), nothing, first)

    def fit(key: PRNGKeyArray, own: LaplaceState, batch: Minibatches) -> tuple[LaplaceState, Info]:
        begins = batch.first == 0
        point, moves = lax.cond(begins, lambda: _moved(apply, own, batch), lambda: (own.point, own.moves))
        settled = moves <= SETTLED
        so_far = jax.tree.map(lambda x: jnp.where(begins, 0, x), own.evidence)
        whole = _negative_log_likelihood(apply, likelihood, batch)
        positive = None if concave or above is None else _from_above(apply, above, batch)

        def add(number: Int[Array, ""], total: Gaussian) -> Gaussian:
            slope, H = whole(point, number)
            if positive is not None:
                H = jnp.where(settled, H, positive(point, number))
            return Gaussian(total.precision + H, total.precision_mean + H @ point - slope)

        evidence = lax.fori_loop(batch.first, batch.last, add, so_far)
        if not concave and positive is None:
            evidence = jax.tree.map(partial(jnp.where, settled), evidence, _bent_up(evidence, point))
        return own._replace(point=point, moves=moves, evidence=evidence), {}

    def belief(own: LaplaceState) -> Gaussian:
        return Gaussian(*(x + y for x, y in zip(own.prior, own.evidence, strict=True)))

    def start(own: LaplaceState, prior: Gaussian, q: Gaussian) -> LaplaceState:
        mode = q.mean  # not a number where sums that are not mixed yet have no precision: then it stays
        return own._replace(prior=prior, towards=jnp.where(jnp.isfinite(mode).all(), mode, own.point))

    def adopt(own: LaplaceState) -> LaplaceState:
        return own._replace(evidence=jax.tree.map(jnp.zeros_like, own.evidence))

    return Learner(prior, init, fit, belief, start, adopt, reuses=True)


def _moved(apply: Any, own: LaplaceState, batch: Minibatches) -> tuple[Float[Array, "d"], Float[Array, ""]]:
    """The point on the way to where it should go at which no output of the agent's data has changed too much.

    And by how much one would change all the way; before the first round nothing is known of that.
    """

    def furthest(number: Int[Array, ""], most: Array) -> Array:
        inputs, _ = batch.step(number)
        change = jnp.abs(_outputs(apply, own.towards, inputs) - _outputs(apply, own.point, inputs))
        return jnp.maximum(most, change.max())

    change = lax.fori_loop(0, batch.steps, furthest, jnp.zeros((), own.point.dtype))
    point = own.point + (own.towards - own.point) * jnp.minimum(1, MOST / jnp.maximum(change, 1e-30))
    return point, jnp.where(jnp.isinf(own.moves) & (change == 0), jnp.asarray(1e30, change.dtype), change)


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
        real = _counted(batch, number, inputs).astype(point.dtype)

        def total(point: Array) -> Float[Array, ""]:
            return jnp.sum(real * jax.vmap(of_one, (None, 0, 0))(point, inputs, targets))

        slope, hessian = jax.grad(total)(point), jax.hessian(total)(point)
        return slope, (hessian + hessian.T) / 2

    return at


def _from_above(apply: Any, above: Above, batch: Minibatches) -> Any:
    """Σ Jᵀ C J over a step's examples, at a point."""

    def of_one(point: Array, x: Array, y: Array) -> Array:
        J = jax.jacfwd(lambda at: _outputs(apply, at, x[None])[0])(point)
        C = above(_outputs(apply, point, x[None]), y[None])[0]
        made: Array = J.T @ C @ J
        return made

    def at(point: Array, number: Any) -> Array:
        inputs, targets = batch.step(number)
        each = jax.vmap(of_one, (None, 0, 0))(point, inputs, targets)
        return jnp.einsum("n,nij->ij", _counted(batch, number, inputs).astype(point.dtype), each)

    return at


def _counted(batch: Minibatches, number: Any, inputs: Array) -> Array:
    """Which of a step's examples count."""
    count = inputs.shape[0] if batch.counts is None else batch.counts[number]
    return jnp.arange(inputs.shape[0]) < count


def _bent_up(evidence: Gaussian, point: Array) -> Gaussian:
    """The same slope at the point, with no negative curvature."""
    values, vectors = jnp.linalg.eigh(evidence.precision)
    H = (vectors * jnp.maximum(values, 0)) @ vectors.T
    return Gaussian(H, evidence.precision_mean + (H - evidence.precision) @ point)
