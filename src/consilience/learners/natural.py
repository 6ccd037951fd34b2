"""Natural-gradient variational inference: means and curvatures, no second moments of gradients.

Minimise  λ E_b[mean loss] + KL(b ‖ N(m₀, Λ₀⁻¹))  with λ = n / temperature. With δ = Λ₀/λ the belief is
N(m, 1/(λ(h + δ))): h is the curvature of the mean loss, so that the agent's own evidence is λh and nothing else. A step
draws the weights w = m + ε and has ĝ, the gradient there; by Price's theorem ĥ = ĝ ε λ(h + δ) estimates E ∇² loss, and

    h ← β₂ h + (1 − β₂) ĥ + ½ (1 − β₂)² (h − ĥ)² / (h + δ)        (which keeps h + δ positive)
    m ← m − rate · (ĝ + δ (m − m₀)) / (h + δ)                       mean = "newton"
    m ← m − rate · (ĝ + min(δ, pull) (m − m₀))                      mean = "sgd"

(without a pull m is where the own data alone leads, and the prior comes in afterwards, by Bayes' rule. So it does where
evidence is summed up: a pull that is not the prior's own only holds m near it, and what is told of the data is
N(m, 1/(λh)); taken for a posterior, b/q would have all movement as evidence, in everybody's site, and diverge)

With a correction the slope of the prior at q, where the round begins, is part of every step:

    m ← m − rate · (ĝ + δ (q − m₀) + min(δ, pull) (m − q))

Where sites t are summed up the prior is the cavity q/t, and its slope at q is what everybody else's evidence says
there. So agents come to rest where all data together leads, not where an average of what each would do alone comes to
rest. What an agent says of its data then moves by what it has learnt, t ← t · b/q with b = N(q, Λ₀⁻¹) · N(m, 1/(λh)):
its mean by m − q, and what that is to others by h as much. So h is at most correction/L, L = rate · steps / (1 − β₁)
being how far the steps of a round reach together down a slope of 1: a correction of 1 takes back in a round the drift
of the one before, and more would overshoot.

Momentum is on ĝ (Shen et al. 2024, here with a Gaussian prior of any precisions). Descent by the gradient's own size
is what different data at different agents bears best: normalised steps are as large where an agent knows nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32
from pydantic import Field, PositiveFloat

from consilience.agent import Info, Learner
from consilience.beliefs import MeanField
from consilience.described.fields import Described
from consilience.learners.minibatches import Minibatches, loss_of_step
from consilience.learners.one_pass import one_pass
from consilience.learners.packing import Blocks, Packing, packing_of
from consilience.models import LogDensity, Model, log_likelihood
from consilience.models.noise import FLOATS, INTEGERS, KEY_WORDS, normal

NUMBERS = 11  # how many `constants_of` there are


class NaturalOptions(Described):
    """The constants of natural-gradient learning."""

    learning_rate: PositiveFloat = Field(0.05, description="step size of the means")
    decay: float = Field(0.99, gt=0, le=1, description="factor on the learning rate a round")
    momentum: float = Field(0.9, ge=0, lt=1, description="β₁, on the gradients of the means")
    mean: Literal["sgd", "newton"] = Field(
        "sgd", description="how means move: by the gradient's own size, or divided by the curvature"
    )
    estimator: Literal["price", "squares"] = Field(
        "price", description="of the curvature: gradients times noise (Price), or squared gradients (Fisher)"
    )
    curvature: PositiveFloat = Field(0.1, description="h at the start: of the mean loss, at every weight")
    curvature_decay: float = Field(0.9998, gt=0, lt=1, description="β₂: how slowly curvatures follow what is seen")
    floor: float = Field(1e-4, ge=0, description="least curvature; what falls below is raised to it")
    pull: float = Field(
        0.02, ge=0, description="sgd: the most that the prior pulls means back; 0: they follow the own data alone"
    )
    correction: float = Field(
        0.0,
        ge=0,
        description="sgd, where evidence is summed up: how much of the drift of a round the next takes back by what "
        "others' evidence says; about 1, or 0 for nothing",
    )
    prior_sd: PositiveFloat = Field(0.05, description="of the first prior, around the shared initial weights")
    temperature: PositiveFloat = Field(1.0, description="1 is Bayes' rule; below, data counts more often")


class NaturalState(NamedTuple):
    """What an agent keeps: m, h and the momentum as blocks, the prior, λ, how many steps and rounds were made.

    `begun` is where the round began, q's mean; only a correction asks for it, and it is empty without one.
    """

    mean: Blocks
    curvature: Blocks
    momentum: Blocks
    begun: Blocks
    prior: MeanField
    scale: Float[Array, ""]
    steps: Float[Array, ""]
    rounds: Float[Array, ""]


DEFAULTS = NaturalOptions()


def natural_learner(
    model: Model,
    packing: Packing,
    options: NaturalOptions = DEFAULTS,
    likelihood: LogDensity = log_likelihood,
    summed: bool = False,
) -> Learner:
    """Natural-gradient inference, for any consensus; it is given the parameters that all agents share at the start.

    summed: whether what it says of its data is to be added up with what others say of theirs (sites, tracking).
    """
    apart = options.mean == "sgd" and (summed or not options.pull)

    def fit(key: PRNGKeyArray, own: NaturalState, batch: Minibatches) -> tuple[NaturalState, Info]:
        rate = options.learning_rate * options.decay**own.rounds
        scale = batch.samples / options.temperature
        before = own.steps - batch.first  # this round
        constants = partial(constants_of, options, rate, scale, before, batch)
        prior: tuple[Blocks, ...] = packing.split(own.prior.mean), packing.split(own.prior.precision)
        if options.correction:
            most = most_curvature(options, batch)
            own = own._replace(curvature=jax.tree.map(lambda h: _at_most(h, most.astype(h.dtype)), own.curvature))
            slope = (own.prior.precision * packing.flatten(own.begun) - own.prior.precision_mean) / scale
            prior = own.begun, prior[1], packing.split(slope)
        parts, loss = descend(model, packing, likelihood, options, key, own[:3], prior, batch, constants)
        numbers = jnp.asarray(scale), before + batch.last, own.rounds + batch.ends
        return NaturalState(*parts, own.begun, own.prior, *numbers), {"loss": loss}

    def belief(own: NaturalState) -> MeanField:
        evidence, mean = own.scale * packing.flatten(own.curvature), packing.flatten(own.mean)
        precision = own.prior.precision + evidence
        if options.correction:
            begun = packing.flatten(own.begun)
            return MeanField(precision, own.prior.precision * begun + evidence * mean)
        if apart:  # Bayes' rule: the prior times N(m, 1/(λh)), which is what the data says
            return MeanField(precision, own.prior.precision_mean + evidence * mean)
        return MeanField(precision, precision * mean)

    def start(own: NaturalState, prior: MeanField, q: MeanField) -> NaturalState:
        mean, rest = packing.split(q.mean), jax.tree.map(jnp.zeros_like, own.momentum)
        return own._replace(mean=mean, momentum=rest, begun=kept(mean), prior=prior, steps=0 * own.steps)

    def adopt(own: NaturalState) -> NaturalState:
        mean = packing.split(own.prior.mean)
        return own._replace(mean=mean, begun=kept(mean), scale=jnp.zeros(()))

    def kept(mean: Blocks) -> Blocks:
        return mean if options.correction else ()

    init = partial(started, options=options)
    return Learner(lambda given: init(given).prior, init, fit, belief, start, adopt, reuses=True)


def started(parameters: Any, options: NaturalOptions = DEFAULTS) -> NaturalState:
    """An agent's state before its first round: everything around these parameters, nothing learnt."""
    packing = packing_of(parameters)
    mean = packing.pack(parameters)
    flat = packing.flatten(mean)
    prior = MeanField.from_moments(flat, jnp.full_like(flat, options.prior_sd**2))
    curvature = jax.tree.map(lambda block: jnp.full_like(block, options.curvature), mean)
    nothing = jnp.zeros(())  # no data yet: λ = 0, and the belief is the prior
    rest, begun = jax.tree.map(jnp.zeros_like, mean), mean if options.correction else ()
    return NaturalState(mean, curvature, rest, begun, prior, nothing, nothing, nothing)


def most_curvature(options: NaturalOptions, batch: Minibatches) -> Float[Array, ""]:
    """The largest h with a correction: correction/L, L being how far a round's steps reach down a slope of 1."""
    steps = jnp.maximum(jnp.asarray(batch.steps, jnp.result_type(float)), 1)
    return options.correction * (1 - options.momentum) / (options.learning_rate * steps)


def descend(
    model: Model,
    packing: Packing,
    likelihood: LogDensity,
    options: NaturalOptions,
    key: PRNGKeyArray,
    parts: tuple[Blocks, Blocks, Blocks],
    prior: tuple[Blocks, ...],
    batch: Minibatches,
    constants: Any,
) -> tuple[tuple[Blocks, Blocks, Blocks], Float[Array, ""]]:
    """The steps of a round; the update makes the next draw of the weights while it has the numbers at hand."""
    keys = jax.random.bits(key, (batch.chosen.shape[0] + 1, len(parts[0]), KEY_WORDS), jnp.uint32)
    negative_log_likelihood = loss_of_step(model, packing, likelihood, batch)
    held = list(zip(*prior, strict=True))

    def step(number: Int[Array, ""], carry: tuple[Any, Blocks, Array]) -> tuple[Any, Blocks, Array]:
        parts, weights, total = carry
        loss, slope = jax.value_and_grad(negative_log_likelihood)(weights, number)
        # Adding nothing that comes from the gradient orders all updates after the last use of the weights, so that
        # XLA can overwrite them in place.
        numbers = constants(number) + 0 * slope[0][0, 0]
        new = [
            _update_and_draw(own, held[b], slope[b], numbers, keys[number + 1, b], options)
            for b, own in enumerate(zip(*parts, weights, strict=True))
        ]
        *parts, weights = (tuple(part) for part in zip(*new, strict=True))
        return tuple(parts), weights, total + loss

    numbers, floats = constants(batch.first), jnp.asarray(FLOATS, jnp.result_type(float))
    first = tuple(
        mean
        + normal(mean.shape, keys[batch.first, b], floats=floats).astype(mean.dtype)
        / jnp.sqrt(numbers[0] * h + prior[1][b])
        for b, (mean, h) in enumerate(zip(parts[0], parts[1], strict=True))
    )
    parts, _, total = lax.fori_loop(batch.first, batch.last, step, (parts, first, jnp.zeros((), first[0].dtype)))
    return parts, total / jnp.maximum(batch.last - batch.first, 1)


def constants_of(
    options: NaturalOptions, rate: Any, scale: Any, before: Any, batch: Minibatches, step: Any
) -> Float[Array, "constants"]:
    """The numbers of a step, as one array (see noise.INTEGERS)."""
    b1, b2 = options.momentum, options.curvature_decay
    # What gathers in the momentum is a mean of gradients from a round's first step on; the prior is not part of it.
    gain = (1 - b1) / (1 - b1 ** (before + 1 + step)) if options.mean == "newton" else 1.0
    values = [scale, 1 / scale, b1, gain, rate, 1 - b2, 1 / 2, options.floor, options.pull]
    values += [batch.chosen.shape[1], most_curvature(options, batch)]
    return jnp.stack([jnp.asarray(value, jnp.result_type(float)) for value in values])


def _update_and_draw(
    own: tuple[Array, ...],
    prior: tuple[Array, ...],
    slope: Array,
    numbers: Array,
    key: UInt32[Array, "3"],
    options: NaturalOptions,
) -> tuple[Array, ...]:
    """The update of a block and the next draw of its weights, in one pass.

    prior: its mean and precision; with a correction where the round began, the precision, and the slope there.
    """
    newton, squares = options.mean == "newton", options.estimator == "squares"
    integers = jnp.concatenate([key, jnp.asarray(INTEGERS)])
    floats = jnp.concatenate([numbers, jnp.asarray(FLOATS, numbers.dtype)])

    def bounded(value: Array, least: Array, most: Array) -> Array:
        value = _at_least(value, least)
        return _at_most(value, most) if options.correction else value

    def f(mean: Array, h: Array, v: Array, w: Array, g: Array, p: Array, lam: Array, *more: Array) -> tuple[Array, ...]:
        *shift, x, i = more
        scale, over, b1, gain, size, b2, half, floor, pull, many, most = (x[k] for k in range(NUMBERS))
        delta = lam * over
        total = h + delta
        if squares:
            new = bounded(h + b2 * (g * g * many - h), floor, most)
            sd = lax.rsqrt(scale * new + lam)
        else:
            # h + δ becomes Q / (h + δ). What is the dearest here are divisions, and one does for all that is needed.
            change = b2 * (g * (w - mean) * (scale * total) - h)
            square = half * change * change
            q = bounded(total * (total + change) + square, total * (floor + delta), total * (most + delta))
            one_over = over / (total * q)
            new = bounded(h + change + square * (one_over * q * scale), floor, most)
            sd = total * jnp.sqrt(one_over)
        back = mean - p
        if newton:
            v = b1 * v + g
            mean = mean - size * (gain * v + delta * back) * (scale * sd * sd)
        else:
            v = b1 * v + g
            v = v + shift[0] if options.correction else v
            if options.pull:
                v = v + _at_most(delta, pull) * back
            mean = mean - size * v
        noise = normal(mean.shape, i[:KEY_WORDS], i[KEY_WORDS:], x[NUMBERS:]).astype(mean.dtype)
        return mean, new, v, mean + noise * sd

    return one_pass(f, *own, slope, *prior, floats, integers)


def _at_least(value: Array, least: Array) -> Array:
    """The larger of two, what is no number staying so, for less than `jnp.maximum`, which asks that of both."""
    return jnp.where(value < least, least, value)


def _at_most(value: Array, most: Array) -> Array:
    """The smaller of two, likewise."""
    return jnp.where(value > most, most, value)
