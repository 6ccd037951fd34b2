"""The minimisation of a round: gradients from draws of weights or of outputs, and Adam's update in one pass.

The gradient of the likelihood term is estimated by Bayes by Backprop, either from one draw of the weights a step (any
model), or from draws of the layers' outputs (models with `apply_gaussian`). The KL term is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from consilience.learners.minibatches import Minibatches, loss_of_step
from consilience.learners.one_pass import one_pass
from consilience.learners.packing import Blocks, Packing
from consilience.models import LogDensity, Model
from consilience.models.noise import FLOATS, INTEGERS, KEY_WORDS, normal

B1, B2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants
NUMBERS = 10  # how many `constants_of` there are


class Fit(NamedTuple):
    """b_i and Adam's memory of it, as blocks: μ, σ, and the first and second moments of both gradients."""

    mean: Blocks
    sd: Blocks
    mean_first: Blocks
    mean_second: Blocks
    sd_first: Blocks
    sd_second: Blocks


def by_weights(
    model: Model,
    packing: Packing,
    likelihood: LogDensity,
    key: PRNGKeyArray,
    fit: Fit,
    prior: tuple[Blocks, Blocks],
    batch: Minibatches,
    constants: Callable[[Any], Array],
) -> tuple[Fit, Float[Array, ""]]:
    """Minimise with one draw of the weights a step; the update makes the next draw while it has the numbers at hand."""
    blocks = len(fit.mean)
    keys = jax.random.bits(key, (batch.chosen.shape[0] + 1, blocks, KEY_WORDS), jnp.uint32)
    negative_log_likelihood = loss_of_step(model, packing, likelihood, batch)

    def step(number: Int[Array, ""], carry: tuple[Fit, Blocks, Array]) -> tuple[Fit, Blocks, Array]:
        fit, weights, total = carry
        loss, slope = jax.value_and_grad(negative_log_likelihood)(weights, number)
        numbers = constants(number)
        # Adding nothing that comes from the gradient orders all updates after the last use of the weights, so that
        # XLA can overwrite them in place.
        numbers = numbers + 0 * slope[0][0, 0]
        new = [
            _update_and_draw(own, prior[0][b], prior[1][b], slope[b], numbers, keys[number + 1, b])
            for b, own in enumerate(zip(*fit, weights, strict=True))
        ]
        *parts, weights = (tuple(part) for part in zip(*new, strict=True))
        return Fit(*parts), weights, total + loss

    floats = jnp.asarray(FLOATS, jnp.result_type(float))  # as in the update: what is drawn here or there is the same
    first = tuple(
        mean + sd * normal(mean.shape, keys[batch.first, b], floats=floats).astype(mean.dtype)
        for b, (mean, sd) in enumerate(zip(fit.mean, fit.sd, strict=True))
    )
    fit, _, total = lax.fori_loop(batch.first, batch.last, step, (fit, first, jnp.zeros((), fit.mean[0].dtype)))
    return fit, total / jnp.maximum(batch.last - batch.first, 1)


def by_outputs(
    model: Model,
    packing: Packing,
    likelihood: LogDensity,
    key: PRNGKeyArray,
    fit: Fit,
    prior: tuple[Blocks, Blocks],
    batch: Minibatches,
    constants: Callable[[Any], Array],
) -> tuple[Fit, Float[Array, ""]]:
    """Minimise with draws of the layers' outputs: less noise a step, twice the products."""
    assert model.apply_gaussian is not None
    apply_gaussian = model.apply_gaussian

    def negative_log_likelihood(mean: Blocks, variance: Blocks, number: Any, own: PRNGKeyArray) -> Float[Array, ""]:
        inputs, targets = batch.step(number)
        outputs = apply_gaussian(packing.unpack(mean), packing.unpack(variance), inputs, own)
        return -batch.mean(likelihood(outputs, targets), number)

    def step(number: Int[Array, ""], carry: tuple[Fit, Array]) -> tuple[Fit, Array]:
        fit, total = carry
        variance = jax.tree.map(jnp.square, fit.sd)
        loss, (slope, variance_slope) = jax.value_and_grad(negative_log_likelihood, argnums=(0, 1))(
            fit.mean, variance, number, jax.random.fold_in(key, number)
        )
        numbers = constants(number)
        new = [
            _update(own, prior[0][b], prior[1][b], slope[b], variance_slope[b], numbers)
            for b, own in enumerate(zip(*fit, strict=True))
        ]
        return Fit(*(tuple(part) for part in zip(*new, strict=True))), total + loss

    fit, total = lax.fori_loop(batch.first, batch.last, step, (fit, jnp.zeros((), fit.mean[0].dtype)))
    return fit, total / jnp.maximum(batch.last - batch.first, 1)


def constants_of(step: Any, rate: Any, kl_scale: Any, sd_rate: float) -> Float[Array, "constants"]:
    """The numbers of a step, as one array (see noise.INTEGERS): Adam's with bias corrections, and the KL's factor."""
    correction = jnp.sqrt(1 - B2**step)
    size = rate * correction / (1 - B1**step)
    values = [kl_scale, 1.0, 1 - B1, 1 - B2, size, EPSILON * correction, 1 / 2, 1 / 3, 1 / 4, size * sd_rate]
    return jnp.stack([jnp.asarray(value, jnp.result_type(float)) for value in values])


def _adam(own: tuple[Array, ...], slopes: tuple[Array, Array], numbers: Array) -> tuple[Array, ...]:
    """One step of Adam on μ and log σ from the gradients with respect to them; σ itself is stored."""
    mean, sd, mean_first, mean_second, sd_first, sd_second = own
    _, one, b1, b2, size, epsilon, half, third, quarter, sd_size = (numbers[i] for i in range(NUMBERS))
    mean_first = mean_first + b1 * (slopes[0] - mean_first)
    sd_first = sd_first + b1 * (slopes[1] - sd_first)
    mean_second = mean_second + b2 * (slopes[0] * slopes[0] - mean_second)
    sd_second = sd_second + b2 * (slopes[1] * slopes[1] - sd_second)
    mean = mean - size * mean_first / (jnp.sqrt(mean_second) + epsilon)
    d = sd_size * sd_first / (jnp.sqrt(sd_second) + epsilon)
    # σ exp(−d) without an exponential: four terms, exact to 1e-6 for steps up to 0.1 and positive for any.
    sd = sd * (one - d * (one - half * d * (one - third * d * (one - quarter * d))))
    return mean, sd, mean_first, mean_second, sd_first, sd_second


def _update_and_draw(
    own: tuple[Array, ...],
    prior_mean: Array,
    prior_precision: Array,
    slope: Array,
    numbers: Array,
    key: UInt32[Array, "3"],
) -> tuple[Array, ...]:
    """Gradient of likelihood and KL, Adam, and the next draw of the weights, in one pass over a block."""
    integers = jnp.concatenate([key, jnp.asarray(INTEGERS)])
    floats = jnp.concatenate([numbers, jnp.asarray(FLOATS, numbers.dtype)])

    def f(
        mean: Array, sd: Array, m1: Array, m2: Array, s1: Array, s2: Array, w: Array, p: Array, lam: Array, g: Array,
        x: Array, i: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        kl, one = x[0], x[1]
        mean_slope = g + lam * (mean - p) * kl
        sd_slope = g * (w - mean) + (lam * sd * sd - one) * kl
        new = _adam((mean, sd, m1, m2, s1, s2), (mean_slope, sd_slope), x)
        noise = normal(mean.shape, i[:KEY_WORDS], i[KEY_WORDS:], x[NUMBERS:]).astype(mean.dtype)
        return *new, new[0] + new[1] * noise

    return one_pass(f, *own, prior_mean, prior_precision, slope, floats, integers)


def _update(
    own: tuple[Array, ...],
    prior_mean: Array,
    prior_precision: Array,
    slope: Array,
    variance_slope: Array,
    numbers: Array,
) -> tuple[Array, ...]:
    """The same from gradients with respect to mean and variance, without a draw."""

    def f(
        mean: Array, sd: Array, m1: Array, m2: Array, s1: Array, s2: Array, p: Array, lam: Array, g: Array, gv: Array,
        x: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        kl, one = x[0], x[1]
        variance = sd * sd
        sd_slope = (gv + gv) * variance + (lam * variance - one) * kl
        return _adam((mean, sd, m1, m2, s1, s2), (g + lam * (mean - p) * kl, sd_slope), x)

    return one_pass(f, *own, prior_mean, prior_precision, slope, variance_slope, numbers)
