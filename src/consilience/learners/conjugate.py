"""Conjugate Bayesian linear regression: streaming, exact, with a full covariance."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from consilience.agent import Agent, Learner, streaming
from consilience.beliefs import Gaussian
from consilience.beliefs.family import require
from consilience.consensus.pooling import pooling


class Observations(NamedTuple):
    """A batch of M feature vectors φ(x) and their labels y."""

    features: Float[Array, "m d"]
    labels: Float[Array, "m"]


def evidence(batch: Observations, noise: float) -> Gaussian:
    """What a batch adds to the natural parameters: (ΦᵀΦ/α², Φᵀy/α²), with noise standard deviation α."""
    require(jnp.isfinite(batch.features), "features", "must be finite", batch.features)
    require(jnp.isfinite(batch.labels), "labels", "must be finite", batch.labels)
    scaled = batch.features.T / noise**2
    return Gaussian(scaled @ batch.features, scaled @ batch.labels)


def conjugate(prior: Gaussian, noise: float) -> Agent:
    """An agent of the paper for y = θᵀφ(x) + N(0, noise²): Bayes' rule (eq. 2) is addition of natural parameters.

    >>> agent = conjugate(Gaussian.from_moments(jnp.zeros(1), jnp.eye(1)), noise=1.0)
    >>> key = jax.random.key(0)
    >>> belief, _ = agent.learn(key, agent.init(key), Observations(jnp.ones((3, 1)), jnp.ones(3)))
    >>> belief.mean.tolist()
    [0.75]
    """
    return pooling(conjugate_learner(prior, noise))


def conjugate_learner(prior: Gaussian, noise: float) -> Learner:
    """Conjugate regression, for any consensus; every batch is new evidence."""

    def update(q: Gaussian, batch: Observations) -> Gaussian:
        b: Gaussian = jax.tree.map(lambda prior, new: prior + new, q, evidence(batch, noise))
        return b

    return streaming(prior, update)
