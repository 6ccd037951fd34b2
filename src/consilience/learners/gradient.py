"""Point weights by gradient steps: what federated baselines do, as a learner whose belief is a point."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field, PositiveFloat

from consilience.agent import Info, Learner
from consilience.beliefs import Point
from consilience.described.fields import Described
from consilience.learners.minibatches import Minibatches, loss_of_step
from consilience.learners.one_pass import one_pass
from consilience.learners.packing import Blocks, Packing, packing_of
from consilience.models import LogDensity, Model, log_likelihood

B2, EPSILON = 0.999, 1e-8  # Adam's usual constants


class GradientOptions(Described):
    """The constants of gradient steps."""

    learning_rate: PositiveFloat = Field(0.05, description="step size")
    decay: float = Field(0.99, gt=0, le=1, description="factor on the learning rate a round")
    optimizer: Literal["sgd", "adam"] = Field("sgd", description="steps by the gradient's own size, or normalised ones")
    momentum: float = Field(0.9, ge=0, lt=1, description="of the gradients; forgotten when a round begins")
    proximal: float = Field(0.0, ge=0, description="FedProx's μ: how strongly weights are held where they were pooled")


class GradientState(NamedTuple):
    """What an agent keeps: its weights, the moments of its gradients, a shift, what it pooled, steps and rounds.

    `shift` is added to every gradient (see `consensus.gradient_tracking`); there is none where it is empty, as there
    are no second moments without Adam.
    """

    weights: Blocks
    first: Blocks
    second: Blocks
    shift: Blocks
    prior: Point
    steps: Float[Array, ""]
    rounds: Float[Array, ""]


DEFAULTS = GradientOptions()


def gradient_learner(
    model: Model,
    packing: Packing,
    options: GradientOptions = DEFAULTS,
    likelihood: LogDensity = log_likelihood,
    shifted: bool = False,
) -> Learner:
    """Gradient steps on point weights, for any consensus; it is given the parameters that all share at the start."""

    def init(given: Any) -> GradientState:
        weights = packing_of(given).pack(given)
        zero = jax.tree.map(jnp.zeros_like, weights)
        second, shift = zero if options.optimizer == "adam" else (), zero if shifted else ()
        prior = Point(packing.flatten(weights))
        return GradientState(weights, zero, second, shift, prior, jnp.zeros(()), jnp.zeros(()))

    def fit(key: PRNGKeyArray, own: GradientState, batch: Minibatches) -> tuple[GradientState, Info]:
        rate = options.learning_rate * options.decay**own.rounds
        before = own.steps - batch.first  # this round
        anchor = packing.split(own.prior.value)
        loss = loss_of_step(model, packing, likelihood, batch)

        def step(number: Int[Array, ""], carry: tuple[Any, Array]) -> tuple[Any, Array]:
            (weights, first, second), total = carry
            value, slope = jax.value_and_grad(loss)(weights, number)
            numbers = constants_of(options, rate, before + 1 + number)
            parts = [weights, anchor, slope, first]
            parts += [second] if second else []
            parts += [own.shift] if shifted else []
            new = [_update(options, shifted, numbers, *each) for each in zip(*parts, strict=True)]
            weights, first, *rest = (tuple(part) for part in zip(*new, strict=True))
            return (weights, first, rest[0] if rest else ()), total + value

        begin = (own.weights, own.first, own.second), jnp.zeros((), own.weights[0].dtype)
        (weights, first, second), total = lax.fori_loop(batch.first, batch.last, step, begin)
        learnt = own._replace(
            weights=weights,
            first=first,
            second=second,
            steps=before + batch.last,
            rounds=own.rounds + batch.ends,
        )
        return learnt, {"loss": total / jnp.maximum(batch.last - batch.first, 1)}

    def belief(own: GradientState) -> Point:
        return Point(packing.flatten(own.weights))

    def start(own: GradientState, prior: Point, q: Point) -> GradientState:
        forgotten = partial(jax.tree.map, jnp.zeros_like)
        first, second = forgotten(own.first), forgotten(own.second)
        return own._replace(weights=packing.split(q.value), first=first, second=second, prior=q, steps=0 * own.steps)

    def adopt(own: GradientState) -> GradientState:
        return own._replace(weights=packing.split(own.prior.value))

    return Learner(lambda given: init(given).prior, init, fit, belief, start, adopt, reuses=True)


def constants_of(options: GradientOptions, rate: Any, step: Any) -> Float[Array, "constants"]:
    """The numbers of a step, as one array."""
    adam, b1 = options.optimizer == "adam", options.momentum
    correction = jnp.sqrt(1 - B2**step)
    size = rate * correction / (1 - b1**step) if adam else rate
    gain = 1 - b1 if adam else 1.0
    values = [size, b1, gain, options.proximal, 1 - B2, EPSILON * correction]
    return jnp.stack([jnp.asarray(value, jnp.result_type(float)) for value in values])


def _update(options: GradientOptions, shifted: bool, numbers: Array, *own: Array) -> tuple[Array, ...]:
    """A step of a block, in one pass."""

    def f(weights: Array, anchor: Array, g: Array, first: Array, *more: Array) -> tuple[Array, ...]:
        *rest, x = more
        size, b1, gain, proximal, b2, epsilon = (x[k] for k in range(6))
        if shifted:
            g = g + rest[-1]
        if options.proximal:
            g = g + proximal * (weights - anchor)
        first = b1 * first + gain * g
        if options.optimizer == "sgd":
            return weights - size * first, first
        second = rest[0] + b2 * (g * g - rest[0])
        return weights - size * first / (jnp.sqrt(second) + epsilon), first, second

    return one_pass(f, *own, numbers)
