"""Variational inference with a mean-field Gaussian: Bayes' rule projected onto the family (eqs. 2 and 3, Remark 1).

In a round an agent minimises  E_b[−log ℓ(data | θ)] + KL(b ‖ q)  over b = N(μ, σ²), from minibatches, by Adam on μ and
log σ. The gradient of the likelihood term is estimated by Bayes by Backprop, either from one draw of the weights a step
(any model), or from draws of the layers' outputs (models with `apply_gaussian`). The KL term is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from consilience.agent import Agent, Inbox, Info
from consilience.beliefs import MeanField
from consilience.learners.one_pass import one_pass
from consilience.learners.packing import Blocks, Packing, packing_of
from consilience.models import Model, log_likelihood
from consilience.noise import FLOATS, INTEGERS, KEY_WORDS, normal

B1, B2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants
NUMBERS = 10  # how many `_constants` there are


class Minibatches(NamedTuple):
    """The data of a round: a table of examples, which of its rows each step takes, and n in KL/n.

    The table may be everybody's: a learner reads only the chosen rows. Of all steps, those from `first` on and before
    `last` are to be made; learning from both parts of a round, one after the other, is learning from the whole. Where a
    round has fewer steps than there are rows of `chosen`, `of_round` says how many.

    >>> rows = jnp.arange(12).reshape(3, 4)  # three steps of four examples
    >>> batch = Minibatches(jnp.ones((12, 2)), jnp.zeros(12, int), rows, samples=12.0)
    >>> batch.last, batch.between(1, 2).first
    (3, 1)
    """

    inputs: Array
    labels: Int[Array, "examples"] | Float[Array, "examples"]
    chosen: Int[Array, "steps batch"]
    samples: Float[Array, ""] | float
    span: tuple[Any, Any] | None = None
    of_round: Any = None

    @property
    def first(self) -> Any:
        """The first step to make."""
        return 0 if self.span is None else self.span[0]

    @property
    def last(self) -> Any:
        """The step before which to stop."""
        return self.steps if self.span is None else self.span[1]

    @property
    def steps(self) -> Any:
        """How many steps the whole round has."""
        return self.chosen.shape[0] if self.of_round is None else self.of_round

    @property
    def ends(self) -> Any:
        """Whether the last step of the round is among those to make."""
        return (self.last == self.steps) & (self.first < self.last)

    def between(self, first: Any, last: Any) -> Minibatches:
        """The same round, to be made in part."""
        return self._replace(span=(first, last))

    def step(self, number: Any) -> tuple[Array, Array]:
        """Inputs and labels of one step; images are kept as bytes and scaled to [0, 1] when they are used."""
        rows = self.chosen[number]
        inputs = self.inputs[rows]
        if inputs.dtype == jnp.uint8:
            inputs = inputs * jnp.asarray(1 / 255, jnp.result_type(float))
        return inputs, self.labels[rows]


class Options(NamedTuple):
    """Every constant that the paper leaves open or states.

    learning_rate, decay: Adam's step size and its factor a round (both from the paper).
    initial_sd: standard deviation of every weight at the start.
    prior_sd: standard deviation of the first prior, around the shared initial weights.
    kl_weight: factor on the KL term; 1 is Bayes' rule, less trusts the data more.
    kl_growth: factor on kl_weight a round. Agents reuse their data every round, and with each use its evidence counts
    again; above 1 the uses count less and less, and beliefs come to rest where the evidence balances.
    sd_rate: step size of log σ as a multiple of that of μ. At 1, Adam hardly moves log σ within a round, and precisions
    then carry little information into the pooling.
    start: where a round's minimisation starts, at the agent's `own` last belief or at what it has `pooled`.
    moments: whether Adam's moments are kept between rounds (`keep`) or begin anew (`reset`).
    estimator: `weights` draws the weights once a step, `outputs` draws every layer's outputs for every example.
    """

    learning_rate: float = 1e-3
    decay: float = 0.99
    initial_sd: float = 0.05
    prior_sd: float = 0.05
    kl_weight: float = 1.0
    kl_growth: float = 1.0
    sd_rate: float = 10.0
    start: Literal["own", "pooled"] = "pooled"
    moments: Literal["keep", "reset"] = "keep"
    estimator: Literal["weights", "outputs"] = "weights"


DEFAULTS = Options()


class Fit(NamedTuple):
    """b_i and Adam's memory of it, as blocks: μ, σ, and the first and second moments of both gradients."""

    mean: Blocks
    sd: Blocks
    mean_first: Blocks
    mean_second: Blocks
    sd_first: Blocks
    sd_second: Blocks


class VariationalState(NamedTuple):
    """What an agent keeps: its fit, the prior q_i it pooled, how many steps Adam made, how many rounds were played."""

    fit: Fit
    prior: MeanField
    steps: Float[Array, ""]
    rounds: Float[Array, ""]


Likelihood = Callable[[Float[Array, "batch outputs"], Array], Float[Array, "batch"]]


def variational(
    model: Model, initial: Any, options: Options = DEFAULTS, likelihood: Likelihood = log_likelihood
) -> Agent:
    """An agent that learns a network's weights by variational inference.

    `initial` are the parameters that all agents share at the start, once; `likelihood(outputs, labels)` is log ℓ of
    each example.
    """
    packing = packing_of(initial)
    if options.estimator == "outputs" and model.apply_gaussian is None:
        raise ValueError("estimator: 'outputs' needs a model with apply_gaussian")

    def init(key: PRNGKeyArray) -> VariationalState:
        return started(initial, options)

    def learn(key: PRNGKeyArray, state: VariationalState, batch: Minibatches) -> tuple[VariationalState, Info]:
        minimise = _by_weights if options.estimator == "weights" else _by_outputs
        rate = options.learning_rate * options.decay**state.rounds
        scale = options.kl_weight * options.kl_growth**state.rounds / batch.samples
        before = state.steps - batch.first  # this round
        constants = lambda step: _constants(before + 1 + step, rate, scale, options.sd_rate)  # noqa: E731
        prior = packing.split(state.prior.mean), packing.split(state.prior.precision)
        fit, loss = minimise(model, packing, likelihood, key, state.fit, prior, batch, constants)
        rounds = state.rounds + batch.ends
        return VariationalState(fit, state.prior, before + batch.last, rounds), {"loss": loss}

    def publish(state: VariationalState) -> MeanField:
        precision = jax.tree.map(lambda sd: 1 / (sd * sd), state.fit.sd)
        precision_mean = jax.tree.map(lambda p, mean: p * mean, precision, state.fit.mean)
        return MeanField(packing.flatten(precision), packing.flatten(precision_mean))

    def pool(state: VariationalState, inbox: Inbox) -> VariationalState:
        fit, steps, q = state.fit, state.steps, inbox.pooled
        if options.start == "pooled":
            fit = fit._replace(mean=packing.split(q.mean), sd=packing.split(1 / jnp.sqrt(q.precision)))
        if options.moments == "reset":
            fit, steps = Fit(fit.mean, fit.sd, *(jax.tree.map(jnp.zeros_like, part) for part in fit[2:])), 0 * steps
        return VariationalState(fit, q, steps, state.rounds)

    return Agent(init, learn, publish, pool)


def started(parameters: Any, options: Options = DEFAULTS) -> VariationalState:
    """An agent's state before its first round: everything around these parameters, nothing learnt."""
    packing = packing_of(parameters)
    mean = packing.pack(parameters)
    flat = packing.flatten(mean)
    prior = MeanField.from_moments(flat, jnp.full_like(flat, options.prior_sd**2))
    zero = jax.tree.map(jnp.zeros_like, mean)
    sd = jax.tree.map(lambda block: jnp.full_like(block, options.initial_sd), mean)
    return VariationalState(Fit(mean, sd, zero, zero, zero, zero), prior, jnp.zeros(()), jnp.zeros(()))


def _by_weights(
    model: Model,
    packing: Packing,
    likelihood: Likelihood,
    key: PRNGKeyArray,
    fit: Fit,
    prior: tuple[Blocks, Blocks],
    batch: Minibatches,
    constants: Callable[[Any], Array],
) -> tuple[Fit, Float[Array, ""]]:
    """Minimise with one draw of the weights a step; the update makes the next draw while it has the numbers at hand."""
    blocks = len(fit.mean)
    keys = jax.random.bits(key, (batch.chosen.shape[0] + 1, blocks, KEY_WORDS), jnp.uint32)

    def negative_log_likelihood(weights: Blocks, inputs: Array, labels: Array) -> Float[Array, ""]:
        return -jnp.mean(likelihood(model.apply(packing.unpack(weights), inputs), labels))

    def step(number: Int[Array, ""], carry: tuple[Fit, Blocks, Array]) -> tuple[Fit, Blocks, Array]:
        fit, weights, total = carry
        inputs, labels = batch.step(number)
        loss, slope = jax.value_and_grad(negative_log_likelihood)(weights, inputs, labels)
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
    return fit, total / (batch.last - batch.first)


def _by_outputs(
    model: Model,
    packing: Packing,
    likelihood: Likelihood,
    key: PRNGKeyArray,
    fit: Fit,
    prior: tuple[Blocks, Blocks],
    batch: Minibatches,
    constants: Callable[[Any], Array],
) -> tuple[Fit, Float[Array, ""]]:
    """Minimise with draws of the layers' outputs: less noise a step, twice the products."""
    assert model.apply_gaussian is not None
    apply_gaussian = model.apply_gaussian

    def negative_log_likelihood(
        mean: Blocks, variance: Blocks, inputs: Array, labels: Array, own: PRNGKeyArray
    ) -> Float[Array, ""]:
        outputs = apply_gaussian(packing.unpack(mean), packing.unpack(variance), inputs, own)
        return -jnp.mean(likelihood(outputs, labels))

    def step(number: Int[Array, ""], carry: tuple[Fit, Array]) -> tuple[Fit, Array]:
        fit, total = carry
        inputs, labels = batch.step(number)
        variance = jax.tree.map(jnp.square, fit.sd)
        loss, (slope, variance_slope) = jax.value_and_grad(negative_log_likelihood, argnums=(0, 1))(
            fit.mean, variance, inputs, labels, jax.random.fold_in(key, number)
        )
        numbers = constants(number)
        new = [
            _update(own, prior[0][b], prior[1][b], slope[b], variance_slope[b], numbers)
            for b, own in enumerate(zip(*fit, strict=True))
        ]
        return Fit(*(tuple(part) for part in zip(*new, strict=True))), total + loss

    fit, total = lax.fori_loop(batch.first, batch.last, step, (fit, jnp.zeros((), fit.mean[0].dtype)))
    return fit, total / (batch.last - batch.first)


def _constants(step: Any, rate: Any, kl_scale: Any, sd_rate: float) -> Float[Array, "constants"]:
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
