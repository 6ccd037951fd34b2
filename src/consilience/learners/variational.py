"""Variational inference with a mean-field Gaussian: Bayes' rule projected onto the family (eqs. 2 and 3, Remark 1).

In a round an agent minimises  E_b[−log ℓ(data | θ)] + KL(b ‖ q)  over b = N(μ, σ²), from minibatches, by Adam on μ and
log σ (see `descent`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field, PositiveFloat

from consilience.agent import Agent, Info, Learner
from consilience.beliefs import MeanField
from consilience.consensus.pooling import pooling
from consilience.described.fields import Described
from consilience.learners.descent import Fit, by_outputs, by_weights, constants_of
from consilience.learners.minibatches import Minibatches
from consilience.learners.packing import Packing, packing_of
from consilience.models import LogDensity, Model, log_likelihood


class Options(Described):
    """Every constant that the paper leaves open or states."""

    learning_rate: PositiveFloat = Field(1e-3, description="Adam's step size")
    decay: float = Field(0.99, gt=0, le=1, description="factor on the learning rate a round")
    initial_sd: PositiveFloat = Field(0.05, description="of every weight at the start")
    prior_sd: PositiveFloat = Field(0.05, description="of the first prior, around the shared initial weights")
    kl_weight: float = Field(1.0, ge=0, description="factor on the KL term; 1 is Bayes' rule")
    # Agents reuse their data every round, and with each use its evidence counts again. With growth above 1 the uses
    # count less and less, and beliefs come to rest where the evidence balances.
    kl_growth: float = Field(
        1.0, gt=0, description="factor on kl_weight a round; above 1 reused data counts less and less"
    )
    # At 1, Adam hardly moves log σ within a round, and precisions then carry little information into the pooling.
    sd_rate: float = Field(10.0, ge=0, description="learning rate of log σ as a multiple of that of μ")
    start: Literal["own", "pooled"] = Field("pooled", description="where a round's minimisation starts")
    moments: Literal["keep", "reset"] = Field("keep", description="Adam's moments between rounds")
    estimator: Literal["weights", "outputs"] = Field(
        "weights", description="what is drawn for a gradient: the weights once a step, or outputs for every example"
    )


DEFAULTS = Options()


class VariationalState(NamedTuple):
    """What an agent keeps: its fit, the prior q_i it pooled, how many steps Adam made, how many rounds were played."""

    fit: Fit
    prior: MeanField
    steps: Float[Array, ""]
    rounds: Float[Array, ""]


def variational(
    model: Model, initial: Any, options: Options = DEFAULTS, likelihood: LogDensity = log_likelihood
) -> Agent:
    """An agent of the paper that learns a network's weights by variational inference.

    `initial` are the parameters that all agents share at the start, once; `likelihood(outputs, labels)` is log ℓ of
    each example.
    """
    agent = pooling(variational_learner(model, packing_of(initial), options, likelihood))
    return agent._replace(init=lambda key: agent.init(initial))


def variational_learner(
    model: Model, packing: Packing, options: Options = DEFAULTS, likelihood: LogDensity = log_likelihood
) -> Learner:
    """Variational inference by Adam, for any consensus; it is given the parameters that all share at the start."""
    if options.estimator == "outputs" and model.apply_gaussian is None:
        raise ValueError("estimator: 'outputs' needs a model with apply_gaussian")

    def fit(key: PRNGKeyArray, own: VariationalState, batch: Minibatches) -> tuple[VariationalState, Info]:
        minimise = by_weights if options.estimator == "weights" else by_outputs
        rate = options.learning_rate * options.decay**own.rounds
        scale = options.kl_weight * options.kl_growth**own.rounds / batch.samples
        before = own.steps - batch.first  # this round
        constants = lambda step: constants_of(before + 1 + step, rate, scale, options.sd_rate)  # noqa: E731
        prior = packing.split(own.prior.mean), packing.split(own.prior.precision)
        fitted, loss = minimise(model, packing, likelihood, key, own.fit, prior, batch, constants)
        rounds = own.rounds + batch.ends
        return VariationalState(fitted, own.prior, before + batch.last, rounds), {"loss": loss}

    def belief(own: VariationalState) -> MeanField:
        precision = jax.tree.map(lambda sd: 1 / (sd * sd), own.fit.sd)
        precision_mean = jax.tree.map(lambda p, mean: p * mean, precision, own.fit.mean)
        return MeanField(packing.flatten(precision), packing.flatten(precision_mean))

    def start(own: VariationalState, prior: MeanField, q: MeanField) -> VariationalState:
        fit, steps = own.fit, own.steps
        if options.start == "pooled":
            fit = fit._replace(mean=packing.split(q.mean), sd=packing.split(1 / jnp.sqrt(q.precision)))
        if options.moments == "reset":
            fit, steps = Fit(fit.mean, fit.sd, *(jax.tree.map(jnp.zeros_like, part) for part in fit[2:])), 0 * steps
        return VariationalState(fit, prior, steps, own.rounds)

    def adopt(own: VariationalState) -> VariationalState:
        mean, sd = (packing.split(vector) for vector in (own.prior.mean, 1 / jnp.sqrt(own.prior.precision)))
        return own._replace(fit=own.fit._replace(mean=mean, sd=sd))

    init = partial(started, options=options)
    return Learner(lambda given: init(given).prior, init, fit, belief, start, adopt, reuses=True)


def started(parameters: Any, options: Options = DEFAULTS) -> VariationalState:
    """An agent's state before its first round: everything around these parameters, nothing learnt."""
    packing = packing_of(parameters)
    mean = packing.pack(parameters)
    flat = packing.flatten(mean)
    prior = MeanField.from_moments(flat, jnp.full_like(flat, options.prior_sd**2))
    zero = jax.tree.map(jnp.zeros_like, mean)
    sd = jax.tree.map(lambda block: jnp.full_like(block, options.initial_sd), mean)
    return VariationalState(Fit(mean, sd, zero, zero, zero, zero), prior, jnp.zeros(()), jnp.zeros(()))
